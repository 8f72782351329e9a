#include "router/service/envelope.h"

#include "common/bytes.h"
#include "etalon/v1/peer.pb.h"
#include "etalon/v1/router.pb.h"

namespace etalon::router {
namespace {

// Wire types of protobuf's encoding.
enum class WireType : unsigned char { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void PutVarint(std::string* out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void PutTag(std::string* out, int field, WireType type) {
  PutVarint(out, (static_cast<std::uint64_t>(field) << 3) | static_cast<std::uint64_t>(type));
}

std::size_t VarintSize(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

bool GetVarint(std::string_view* in, std::uint64_t* value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && !in->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in->front());
    in->remove_prefix(1);
    *value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

struct Field {
  std::uint64_t number = 0;
  std::uint64_t varint = 0;
  std::string_view bytes;
};

// Takes the field at the front of *in; false when it is malformed.
bool GetField(std::string_view* in, Field* field) {
  *field = {};
  std::uint64_t tag = 0;
  std::uint64_t size = 0;
  if (!GetVarint(in, &tag)) return false;
  field->number = tag >> 3;
  switch (tag & 7) {
    case static_cast<unsigned>(WireType::kVarint):
      return GetVarint(in, &field->varint);
    case static_cast<unsigned>(WireType::kFixed64):
      size = 8;
      break;
    case static_cast<unsigned>(WireType::kFixed32):
      size = 4;
      break;
    case static_cast<unsigned>(WireType::kBytes):
      if (!GetVarint(in, &size)) return false;
      break;
    default:
      return false;
  }
  if (size > in->size()) return false;
  field->bytes = in->substr(0, size);
  in->remove_prefix(size);
  return true;
}

}  // namespace

std::string WrapClientCall(CollectionId collection, std::uint64_t number, std::string_view call) {
  const std::size_t request_size =
      1 + VarintSize(call.size()) + call.size() + 2 + VarintSize(number);
  std::string out;
  out.reserve(request_size + 20);
  PutTag(&out, v1::NodeMessage::kCollectionFieldNumber, WireType::kFixed64);
  PutLe64(&out, collection.value());
  PutTag(&out, v1::NodeMessage::kClientRequestFieldNumber, WireType::kBytes);
  PutVarint(&out, request_size);
  PutTag(&out, v1::ClientRequest::kCallFieldNumber, WireType::kBytes);
  PutVarint(&out, call.size());
  out += call;
  PutTag(&out, v1::ClientRequest::kIdFieldNumber, WireType::kVarint);
  PutVarint(&out, number);
  return out;
}

bool ReadClientAnswer(std::string_view message, ClientAnswer* answer) {
  std::string_view response;
  bool found = false;
  for (Field field; !message.empty();) {
    if (!GetField(&message, &field)) return false;
    if (field.number != v1::NodeMessage::kClientReplyFieldNumber) continue;
    response = field.bytes;
    found = true;
  }
  *answer = {};
  for (Field field; !response.empty();) {
    if (!GetField(&response, &field)) return false;
    if (field.number == v1::ClientResponse::kIdFieldNumber) answer->number = field.varint;
    if (field.number == v1::ClientResponse::kStatusFieldNumber) answer->status = field.bytes;
    if (field.number == v1::ClientResponse::kCallFieldNumber) answer->reply = field.bytes;
  }
  return found;
}

}  // namespace etalon::router
