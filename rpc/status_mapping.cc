#include "rpc/status_mapping.h"

#include <string>

#include "proto/wire.h"

namespace etalon::rpc {
namespace {

constexpr std::size_t kMaxText =
    1024;  // percent-encoding and base64 included, two of them stay below 8 KiB

// Cuts before a whole UTF-8 character.
std::string Shortened(const std::string& text) {
  if (text.size() <= kMaxText) return text;
  std::size_t end = kMaxText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

Reason ReasonWithoutTrailer(grpc::StatusCode code) {
  if (code == grpc::StatusCode::UNAVAILABLE) return Reason::kUnreachableReplicaset;
  if (code == grpc::StatusCode::DEADLINE_EXCEEDED) return Reason::kDeadlinePassed;
  if (code == grpc::StatusCode::RESOURCE_EXHAUSTED) return Reason::kOverloaded;
  return Reason::kNone;
}

}  // namespace

grpc::Status ToGrpc(const Status& status, grpc::ServerContextBase& context) {
  if (status.ok()) return grpc::Status::OK;
  v1::Status message = ToProto(status);
  message.set_message(Shortened(message.message()));
  if (message.has_hint()) message.mutable_hint()->set_text(Shortened(message.hint().text()));
  context.AddTrailingMetadata(kStatusTrailer, message.SerializeAsString());
  return {static_cast<grpc::StatusCode>(status.code()), message.message()};
}

Status FromGrpc(const grpc::Status& status, const grpc::ClientContext& context) {
  if (status.ok()) return OkStatus();
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto trailer = trailers.find(kStatusTrailer);
  v1::Status message;
  if (trailer != trailers.end() &&
      message.ParseFromArray(trailer->second.data(), static_cast<int>(trailer->second.size())) &&
      message.code() == static_cast<std::uint32_t>(status.error_code())) {
    return FromProto(message);
  }
  const int code = status.error_code();
  const bool known = code > 0 && code <= static_cast<int>(Code::kUnauthenticated);
  return Status(known ? static_cast<Code>(code) : Code::kUnknown,
                ReasonWithoutTrailer(status.error_code()), status.error_message());
}

}  // namespace etalon::rpc
