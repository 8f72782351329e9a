#include "tests/collection/calls.h"

#include <limits>

namespace etalon::e2e {

v1::ClientCall MakeCall(const std::string& customer, const std::string& function,
                        const google::protobuf::Message& args, v1::Mode mode) {
  v1::ClientCall call;
  call.mutable_target()->set_string_key(customer);
  call.set_mode(mode);
  call.set_function(function);
  call.set_args(args.SerializeAsString());
  return call;
}

v1::ClientCall WriteCall(const std::string& function, const std::string& customer,
                         const std::string& space, const std::string& key,
                         const std::string& value) {
  v1::PutArgs args;
  args.set_space(space);
  args.set_key(key);
  args.set_value(value);
  return MakeCall(customer, function, args);
}

v1::ClientCall GetCall(const std::string& customer, const std::string& space,
                       const std::string& key, v1::Mode mode) {
  v1::GetArgs args;
  args.set_space(space);
  args.set_key(key);
  return MakeCall(customer, "get", args, mode);
}

void SetRequest(v1::ClientCall* call, std::uint64_t client, std::uint64_t sequence) {
  call->mutable_request()->set_client(client);
  call->mutable_request()->set_sequence(sequence);
}

Result<std::optional<std::string>> ReadGet(const Result<std::string>& answer) {
  if (!answer.ok()) return answer.status();
  v1::GetResult result;
  if (!result.ParseFromString(*answer)) return Internal("this is no result of a get");
  if (!result.found()) return std::optional<std::string>();
  return std::optional<std::string>(result.value());
}

v1::ClientCall ScanCall(const std::string& customer, const std::string& space) {
  v1::ScanArgs args;
  args.set_space(space);
  args.set_limit(100'000);
  return MakeCall(customer, "scan", args);
}

Result<v1::ScanResult> ReadScan(const Result<std::string>& answer) {
  if (!answer.ok()) return answer.status();
  v1::ScanResult page;
  if (!page.ParseFromString(*answer)) return Internal("this is no result of a scan");
  if (!page.cursor().empty()) return Internal("the scan takes more than one page");
  return page;
}

Txn& Txn::Expect(const std::string& space, const std::string& key,
                 const std::optional<std::string>& value) {
  v1::Condition& condition = *args_.add_conditions();
  condition.set_space(space);
  condition.set_key(key);
  condition.set_kind(value ? v1::Condition::EQUALS : v1::Condition::ABSENT);
  if (value) condition.set_value(*value);
  return *this;
}

Txn& Txn::Put(const std::string& space, const std::string& key, const std::string& value) {
  v1::Mutation& mutation = *args_.add_mutations();
  mutation.set_space(space);
  mutation.set_key(key);
  mutation.set_put(value);
  return *this;
}

v1::ClientCall Txn::On(const std::string& customer) const {
  return MakeCall(customer, "txn", args_);
}

}  // namespace etalon::e2e
