#include "engine/transfer/io.h"

namespace etalon::transfer {

bool IsForSource(const v1::TransferMessage& message, ShardUid self) {
  switch (message.body_case()) {
    case v1::TransferMessage::kReserveReply:
    case v1::TransferMessage::kProgress:
    case v1::TransferMessage::kNotLeader:
      return true;
    case v1::TransferMessage::kAnswer:  // about no transfer: to a suspicion
      return !message.answer().has_id() || message.answer().id().source() == self.value();
    case v1::TransferMessage::kReserve:
    case v1::TransferMessage::kStart:
    case v1::TransferMessage::kChunk:
    case v1::TransferMessage::kActivate:
    case v1::TransferMessage::kQuestion:
    case v1::TransferMessage::BODY_NOT_SET:
      return false;
  }
  return false;
}

bool IsForTarget(const v1::TransferMessage& message, ShardUid self) {
  switch (message.body_case()) {
    case v1::TransferMessage::kReserve:
    case v1::TransferMessage::kStart:
    case v1::TransferMessage::kChunk:
    case v1::TransferMessage::kActivate:
    case v1::TransferMessage::kQuestion:
    case v1::TransferMessage::kNotLeader:
      return true;
    case v1::TransferMessage::kAnswer:
      return message.answer().has_id() && message.answer().id().source() != self.value();
    case v1::TransferMessage::kReserveReply:
    case v1::TransferMessage::kProgress:
    case v1::TransferMessage::BODY_NOT_SET:
      return false;
  }
  return false;
}

bool NeedsConfirmation(const v1::TransferMessage& message) {
  return message.has_question() || message.has_answer();
}

}  // namespace etalon::transfer
