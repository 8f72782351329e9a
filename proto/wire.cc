#include "proto/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

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

// Length of the UTF-8 character at the front of `text`; 0 when there is none (overlong forms,
// surrogates and numbers above 0x10ffff are none).
std::size_t CharacterLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f)) return 0;
  if ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f)) return 0;
  return length;
}

std::string ValidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    out += length == 0 ? std::string_view("?") : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

void FillHint(const Hint& hint, v1::Hint* out) {
  if (hint.destination) out->set_destination(hint.destination->value());
  if (hint.epoch) out->set_epoch(hint.epoch->value());
  out->set_leader(ValidUtf8(hint.leader));
  if (hint.term) out->set_term(hint.term->value());
  if (hint.number) out->set_number(*hint.number);
  out->set_text(ValidUtf8(hint.text));
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
  out.set_message(ValidUtf8(status.message()));
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

std::string Serialize(const google::protobuf::MessageLite& message) {
  std::string out;
  google::protobuf::io::StringOutputStream bytes(&out);
  google::protobuf::io::CodedOutputStream coded(&bytes);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return out;
}

}  // namespace etalon
