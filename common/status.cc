#include "common/status.h"

namespace etalon {

namespace {
const std::string kEmpty;
const Hint kNoHint;
}  // namespace

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kCancelled:
      return "CANCELLED";
    case Code::kUnknown:
      return "UNKNOWN";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kAlreadyExists:
      return "ALREADY_EXISTS";
    case Code::kPermissionDenied:
      return "PERMISSION_DENIED";
    case Code::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case Code::kAborted:
      return "ABORTED";
    case Code::kOutOfRange:
      return "OUT_OF_RANGE";
    case Code::kUnimplemented:
      return "UNIMPLEMENTED";
    case Code::kInternal:
      return "INTERNAL";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kDataLoss:
      return "DATA_LOSS";
    case Code::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

Status::Status(Code code, Reason reason, std::string message, Hint hint) {
  if (code != Code::kOk) {
    node_ = std::make_unique<Node>(Node{code, reason, std::move(message), std::move(hint)});
  }
}

Status::Status(const Status& other)
    : node_(other.node_ ? std::make_unique<Node>(*other.node_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) node_ = other.node_ ? std::make_unique<Node>(*other.node_) : nullptr;
  return *this;
}

const std::string& Status::message() const { return node_ ? node_->message : kEmpty; }
const Hint& Status::hint() const { return node_ ? node_->hint : kNoHint; }

Status Status::Annotate(std::string_view what) const {
  if (ok()) return {};
  return Status(code(), reason(), std::string(what) + ": " + message(), hint());
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  std::string out(CodeName(code()));
  if (reason() != Reason::kNone) out += "/" + std::string(ReasonName(reason()));
  if (!message().empty()) out += ": " + message();
  return out;
}

Status InvalidArgument(std::string message, Reason reason) {
  return Status(Code::kInvalidArgument, reason, std::move(message));
}
Status NotFound(std::string message, Reason reason) {
  return Status(Code::kNotFound, reason, std::move(message));
}
Status FailedPrecondition(Reason reason, std::string message, Hint hint) {
  return Status(Code::kFailedPrecondition, reason, std::move(message), std::move(hint));
}
Status Unavailable(Reason reason, std::string message, Hint hint) {
  return Status(Code::kUnavailable, reason, std::move(message), std::move(hint));
}
Status Aborted(Reason reason, std::string message, Hint hint) {
  return Status(Code::kAborted, reason, std::move(message), std::move(hint));
}
Status ResourceExhausted(std::string message, Reason reason) {
  return Status(Code::kResourceExhausted, reason, std::move(message));
}
Status DeadlineExceeded(std::string message) {
  return Status(Code::kDeadlineExceeded, Reason::kDeadlinePassed, std::move(message));
}
Status DataLoss(std::string message, Reason reason) {
  return Status(Code::kDataLoss, reason, std::move(message));
}
Status Internal(std::string message) {
  return Status(Code::kInternal, Reason::kNone, std::move(message));
}

}  // namespace etalon
