// Calls as applications make them.
#pragma once

#include <optional>
#include <string>

#include "common/status.h"
#include "etalon/v1/call.pb.h"
#include "etalon/v1/router.pb.h"
#include "rpc/client/router_client.h"

namespace etalon::e2e {

v1::ClientCall MakeCall(const std::string& customer, const std::string& function,
                        const google::protobuf::Message& args, v1::Mode mode = v1::MODE_RW);
// put, insert, update
v1::ClientCall WriteCall(const std::string& function, const std::string& customer,
                         const std::string& space, const std::string& key,
                         const std::string& value);
v1::ClientCall GetCall(const std::string& customer, const std::string& space,
                       const std::string& key, v1::Mode mode = v1::MODE_RW);
void SetRequest(v1::ClientCall* call, std::uint64_t client, std::uint64_t sequence);

// nullopt: no such record.
Result<std::optional<std::string>> ReadGet(const Result<std::string>& answer);
// All records of one customer, of one space or (empty) of all: one page, so one moment.
v1::ClientCall ScanCall(const std::string& customer, const std::string& space);
Result<v1::ScanResult> ReadScan(const Result<std::string>& answer);

// A transaction, clause by clause.
class Txn {
 public:
  Txn& Expect(const std::string& space, const std::string& key,
              const std::optional<std::string>& value);
  Txn& Put(const std::string& space, const std::string& key, const std::string& value);
  v1::ClientCall On(const std::string& customer) const;

 private:
  v1::TxnArgs args_;
};

}  // namespace etalon::e2e
