// A bank: a customer is a record in one space, its accounts are records in another, all of one
// sharding key. Clients look at all of it by a paged scan and then move money from one account to
// another, in one transaction that counts itself in the customer's record. Whatever moves, crashes
// or is tried again meanwhile: no scan finds a sum that is not the customer's, and every transfer
// that was acknowledged, and no other, was made once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/workloads/workload.h"

namespace etalon::sim {

class Accounts final : public Workload {
 public:
  struct Options {
    int customers = 8;
    int accounts = 4;  // of each
    int clients = 2;   // of each
    std::int64_t start = 1000;
    Duration pause = std::chrono::milliseconds(10);
    Duration timeout = std::chrono::seconds(4);
  };

  Accounts(Cluster& cluster, Options options);
  void Start() override;
  void Stop() override { stopping_ = true; }
  bool idle() const override { return under_way_ == 0; }
  bool Verify(Duration limit) override;
  std::uint64_t scans() const { return reads_; }
  std::uint64_t restarted() const { return restarted_; }

 private:
  // The n-th transfer of a customer, as some client tried it. Its condition is that it is the n-th.
  struct Transfer {
    std::size_t from;
    std::size_t to;
    std::int64_t amount;
    bool acknowledged = false;
    bool unknown = false;
  };
  struct Customer {
    std::string name;
    bool open = false;            // its records exist
    std::uint64_t seen = 0;       // the highest count that anybody was told
    std::uint64_t attempted = 0;  // the highest one that anybody tried to make
    std::map<std::uint64_t, std::vector<Transfer>> tried;  // by their count
  };
  struct Picture {
    std::uint64_t count = 0;
    std::vector<std::int64_t> balances;
  };
  // A scan under way.
  struct Scan {
    std::size_t customer;
    v1::Mode mode;
    std::uint64_t floor;
    std::vector<v1::Record> records;
    std::string cursor;
    bool last_look = false;
  };

  void Later(std::size_t i);
  void Open(std::size_t i);
  void Look(std::size_t i);
  void NextPage(const std::shared_ptr<Scan>& scan);
  void OnPage(const std::shared_ptr<Scan>& scan, const v1::ClientResponse& response);
  void Looked(const Scan& scan);
  void Pay(std::size_t i, const Picture& picture);
  void Settle(const Customer& customer, const Picture& picture);
  bool Parse(const Customer& customer, const Scan& scan, Picture* picture);
  void FailCustomer(const Customer& customer, const std::string& what);
  v1::ClientRequest Request(const Customer& customer, const std::string& function, v1::Mode mode,
                            const std::string& args, bool write);
  std::string AccountName(std::size_t i) const { return "account-" + std::to_string(i); }

  Cluster& cluster_;
  const Options options_;
  std::vector<Customer> customers_;
  std::uint64_t sequence_ = 0;
  std::uint64_t restarted_ = 0;
  int under_way_ = 0;
  bool stopping_ = false;
};

}  // namespace etalon::sim
