#include "proto/wire.h"

#include <algorithm>
#include <limits>

namespace etalon {
namespace {

Code CodeFromNumber(std::uint32_t number) {
  return number <= static_cast<std::uint32_t>(Code::kUnauthenticated) ? static_cast<Code>(number)
                                                                      : Code::kUnknown;
}

Reason ReasonFromNumber(int number) {
  return number >= 0 && number <= std::numeric_limits<std::uint16_t>::max()
             ? static_cast<Reason>(number)
             : Reason::kNone;
}

void FillHint(const Hint& hint, v1::Hint* out) {
  if (hint.destination) out->set_destination(hint.destination->value());
  if (hint.epoch) out->set_epoch(hint.epoch->value());
  out->set_leader(hint.leader);
  if (hint.term) out->set_term(hint.term->value());
  if (hint.number) out->set_number(*hint.number);
  out->set_text(hint.text);
}

Hint HintFromProto(const v1::Hint& hint) {
  Hint out;
  if (hint.has_destination()) out.destination = ShardUid(hint.destination());
  if (hint.has_epoch()) out.epoch = Epoch(hint.epoch());
  out.leader = hint.leader();
  if (hint.has_term()) out.term = Term(hint.term());
  if (hint.has_number()) out.number = hint.number();
  out.text = hint.text();
  return out;
}

}  // namespace

v1::Status ToProto(const Status& status) {
  v1::Status out;
  if (status.ok()) return out;
  out.set_code(static_cast<std::uint32_t>(status.code()));
  out.set_reason(static_cast<v1::Reason>(status.reason()));
  out.set_message(status.message());
  if (status.hint() != Hint{}) FillHint(status.hint(), out.mutable_hint());
  return out;
}

Status FromProto(const v1::Status& status) {
  if (status.code() == 0) return OkStatus();
  return Status(CodeFromNumber(status.code()), ReasonFromNumber(status.reason()), status.message(),
                HintFromProto(status.hint()));
}

v1::BucketId ToProto(const BucketId& bucket) {
  v1::BucketId out;
  out.set_level(bucket.level);
  out.set_number(bucket.number);
  return out;
}

BucketId FromProto(const v1::BucketId& bucket) {
  const auto level =
      std::min<std::uint32_t>(bucket.level(), std::numeric_limits<std::uint8_t>::max());
  return {.level = static_cast<std::uint8_t>(level), .number = bucket.number()};
}

v1::TransferId ToProto(const TransferId& id) {
  v1::TransferId out;
  out.set_source(id.source.value());
  out.set_term(id.term.value());
  out.set_index(id.index.value());
  return out;
}

TransferId FromProto(const v1::TransferId& id) {
  return {.source = ShardUid(id.source()), .term = Term(id.term()), .index = LogIndex(id.index())};
}

}  // namespace etalon
