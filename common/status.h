// Status and Result: how failures are returned. Nothing here throws; no exception crosses a module.
//
// Choice of code (docs/errors.md): UNAVAILABLE = the same call may be tried elsewhere or later;
// ABORTED = start again with fresh routing; FAILED_PRECONDITION = no use until somebody changes the
// state; RESOURCE_EXHAUSTED = back off.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "common/ids.h"
#include "common/reason.h"

namespace etalon {

// The numbers are gRPC's.
enum class Code : std::uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

std::string_view CodeName(Code code);  // "UNAVAILABLE"

// What the caller needs next. Fields that do not apply stay empty.
struct Hint {
  std::optional<ShardUid> destination = {};  // WRONG_BUCKET: where the bucket is
  std::optional<Epoch> epoch = {};           // WRONG_BUCKET: its epoch there
  std::string leader = {};                   // NON_MASTER: replica name of the leader
  std::optional<Term> term = {};             // NON_MASTER: the term the leader is known from
  std::optional<std::uint64_t> number =
      {};                 // failed condition, topology version, switch index, ... by reason
  std::string text = {};  // task ID, key, ... by reason

  bool operator==(const Hint&) const = default;
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // success; costs a null pointer
  Status(Code code, Reason reason, std::string message, Hint hint = {});
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;

  bool ok() const { return node_ == nullptr; }
  Code code() const { return node_ ? node_->code : Code::kOk; }
  Reason reason() const { return node_ ? node_->reason : Reason::kNone; }
  const std::string& message() const;
  const Hint& hint() const;

  // The same failure with "what: " before its message. Success stays success.
  Status Annotate(std::string_view what) const;
  // "UNAVAILABLE/NON_MASTER: text", or "OK".
  std::string ToString() const;

 private:
  struct Node {
    Code code;
    Reason reason;
    std::string message;
    Hint hint;
  };
  std::unique_ptr<Node> node_;
};

inline Status OkStatus() { return {}; }
Status InvalidArgument(std::string message, Reason reason = Reason::kMalformed);
Status NotFound(std::string message, Reason reason = Reason::kNone);
Status FailedPrecondition(Reason reason, std::string message, Hint hint = {});
Status Unavailable(Reason reason, std::string message, Hint hint = {});
Status Aborted(Reason reason, std::string message, Hint hint = {});
Status ResourceExhausted(std::string message, Reason reason = Reason::kOverloaded);
Status DeadlineExceeded(std::string message);
Status DataLoss(std::string message, Reason reason = Reason::kCorrupt);
Status Internal(std::string message);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}        // NOLINT: implicit
  Result(Status status) : v_(std::in_place_index<1>, std::move(status)) {  // NOLINT: implicit
    assert(!std::get<1>(v_).ok());
  }

  bool ok() const { return v_.index() == 0; }
  Status status() const { return ok() ? Status() : std::get<1>(v_); }
  T& value() & { return std::get<0>(v_); }
  const T& value() const& { return std::get<0>(v_); }
  T&& value() && { return std::get<0>(std::move(v_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> v_;
};

#define ETALON_CONCAT_(a, b) a##b
#define ETALON_CONCAT(a, b) ETALON_CONCAT_(a, b)

#define ETALON_RETURN_IF_ERROR(expr)                                                           \
  do {                                                                                         \
    if (::etalon::Status etalon_status_ = (expr); !etalon_status_.ok()) return etalon_status_; \
  } while (0)

#define ETALON_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return tmp.status();            \
  lhs = std::move(tmp).value()
#define ETALON_ASSIGN_OR_RETURN(lhs, expr) \
  ETALON_ASSIGN_OR_RETURN_(ETALON_CONCAT(etalon_result_, __LINE__), lhs, expr)

}  // namespace etalon
