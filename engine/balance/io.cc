#include "engine/balance/io.h"

namespace etalon::balance {

bool IsForOrderTaker(const v1::BalanceMessage& message) {
  return message.has_query() || message.has_order();
}

bool IsForRebalancer(const v1::BalanceMessage& message) {
  return message.has_report() || message.has_result();
}

}  // namespace etalon::balance
