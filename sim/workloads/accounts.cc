#include "sim/workloads/accounts.h"

#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "proto/wire.h"

namespace etalon::sim {

namespace {

constexpr std::uint64_t kClient = 0xba4c;
constexpr std::uint32_t kPage = 2;  // records: every scan has several pages

Status StatusOf(const v1::ClientResponse& response) {
  return FromProto(response.status().code() != 0 ? response.status() : response.call().status());
}

void Put(v1::TxnArgs* txn, const char* space, const std::string& key, std::string value) {
  v1::Mutation& mutation = *txn->add_mutations();
  mutation.set_space(space);
  mutation.set_key(key);
  mutation.set_put(std::move(value));
}

void Expect(v1::TxnArgs* txn, const char* space, const std::string& key,
            const std::optional<std::string>& value) {
  v1::Condition& condition = *txn->add_conditions();
  condition.set_space(space);
  condition.set_key(key);
  condition.set_kind(value ? v1::Condition::EQUALS : v1::Condition::ABSENT);
  if (value) condition.set_value(*value);
}

}  // namespace

Accounts::Accounts(Cluster& cluster, Options options) : cluster_(cluster), options_(options) {
  for (int i = 0; i < options_.customers; ++i) {
    Customer customer;
    customer.name = "customer-" + std::to_string(i);
    customers_.push_back(std::move(customer));
  }
}

void Accounts::Start() {
  for (std::size_t i = 0; i < customers_.size(); ++i) Open(i);
}

void Accounts::Later(std::size_t i) {
  if (stopping_) return;
  const Duration pause = cluster_.world().random().Between(Duration::zero(), options_.pause);
  cluster_.world().After(pause, [this, i] {
    if (stopping_) return;
    customers_[i].open ? Look(i) : Open(i);
  });
}

void Accounts::FailCustomer(const Customer& customer, const std::string& what) {
  Fail(customer.name + ": " + what);
}

v1::ClientRequest Accounts::Request(const Customer& customer, const std::string& function,
                                    v1::Mode mode, const std::string& args, bool write) {
  v1::ClientRequest request;
  v1::ClientCall& call = *request.mutable_call();
  call.mutable_target()->set_string_key(customer.name);
  call.set_mode(mode);
  call.set_function(function);
  call.set_args(args);
  call.set_timeout_millis(static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.timeout).count()));
  if (write) {
    call.mutable_request()->set_client(kClient);
    call.mutable_request()->set_sequence(++sequence_);
  }
  return request;
}

// The customer with all its money in equal accounts.
void Accounts::Open(std::size_t i) {
  v1::TxnArgs txn;
  Expect(&txn, "customers", customers_[i].name, std::nullopt);
  Put(&txn, "customers", customers_[i].name, "0");
  for (int a = 0; a < options_.accounts; ++a)
    Put(&txn, "accounts", AccountName(static_cast<std::size_t>(a)), std::to_string(options_.start));
  ++under_way_;
  cluster_.Client(cluster_.AnyRouter(),
                  Request(customers_[i], "txn", v1::MODE_RW, txn.SerializeAsString(), true),
                  [this, i](const v1::ClientResponse& response) {
                    --under_way_;
                    const Status status = StatusOf(response);
                    customers_[i].open = status.ok() || status.reason() == Reason::kConditionFailed;
                    if (!customers_[i].open) return Later(i);
                    for (int c = 0; c < options_.clients; ++c) Later(i);
                  });
}

void Accounts::Look(std::size_t i) {
  auto scan = std::make_shared<Scan>();
  scan->customer = i;
  scan->mode = cluster_.world().random().Chance(1, 4) ? v1::MODE_BRO : v1::MODE_RW;
  NextPage(scan);
}

void Accounts::NextPage(const std::shared_ptr<Scan>& scan) {
  v1::ScanArgs args;
  args.set_limit(kPage);
  args.set_cursor(scan->cursor);
  if (scan->cursor.empty()) {
    scan->records.clear();
    scan->floor = scan->mode == v1::MODE_RW ? customers_[scan->customer].seen : 0;
  }
  ++under_way_;
  cluster_.Client(
      cluster_.AnyRouter(),
      Request(customers_[scan->customer], "scan", scan->mode, args.SerializeAsString(), false),
      [this, scan](const v1::ClientResponse& response) {
        --under_way_;
        OnPage(scan, response);
      });
}

void Accounts::OnPage(const std::shared_ptr<Scan>& scan, const v1::ClientResponse& response) {
  const Status status = StatusOf(response);
  v1::ScanResult page;
  if (!status.ok() || !page.ParseFromString(response.call().result())) {
    if (status.reason() == Reason::kScanRestarted) ++restarted_;
    scan->cursor.clear();
    return scan->last_look ? NextPage(scan) : Later(scan->customer);
  }
  for (const v1::Record& record : page.records()) scan->records.push_back(record);
  scan->cursor = page.cursor();
  scan->cursor.empty() ? Looked(*scan) : NextPage(scan);
}

bool Accounts::Parse(const Customer& customer, const Scan& scan, Picture* picture) {
  picture->balances.assign(static_cast<std::size_t>(options_.accounts), 0);
  int customers = 0;
  int accounts = 0;
  for (const v1::Record& record : scan.records) {
    if (record.space() == "customers" && record.key() == customer.name) {
      picture->count = std::stoull(record.value());
      ++customers;
      continue;
    }
    for (std::size_t a = 0; a < picture->balances.size(); ++a) {
      if (record.space() != "accounts" || record.key() != AccountName(a)) continue;
      picture->balances[a] = std::stoll(record.value());
      ++accounts;
    }
  }
  return customers == 1 && accounts == options_.accounts;
}

void Accounts::Looked(const Scan& scan) {
  Customer& customer = customers_[scan.customer];
  Picture picture;
  ++reads_;
  // A replica that is behind may not have seen that the customer came.
  const bool behind = scan.mode != v1::MODE_RW && scan.records.empty();
  if (!behind && !Parse(customer, scan, &picture)) {
    return FailCustomer(customer, "a scan found " + std::to_string(scan.records.size()) +
                                      " records of a customer and its accounts");
  }
  const std::int64_t sum =
      std::accumulate(picture.balances.begin(), picture.balances.end(), std::int64_t{0});
  if (!behind && sum != options_.start * options_.accounts) {
    return FailCustomer(customer, "a scan found a sum of " + std::to_string(sum));
  }
  if (picture.count < scan.floor || picture.count > customer.attempted) {
    return FailCustomer(customer, "a scan found " + std::to_string(picture.count) +
                                      " transfers, told were " + std::to_string(scan.floor) +
                                      ", attempted " + std::to_string(customer.attempted));
  }
  cluster_.world().Mix(picture.count);
  if (scan.mode == v1::MODE_RW) customer.seen = std::max(customer.seen, picture.count);
  if (scan.last_look) return Settle(customer, picture);
  if (stopping_) return;
  scan.mode == v1::MODE_RW ? Pay(scan.customer, picture) : Later(scan.customer);
}

void Accounts::Pay(std::size_t i, const Picture& picture) {
  Customer& customer = customers_[i];
  Random& random = cluster_.world().random();
  const std::size_t n = picture.balances.size();
  Transfer transfer;
  transfer.from = random.Below(n);
  transfer.to = (transfer.from + 1 + random.Below(n - 1)) % n;
  transfer.amount = static_cast<std::int64_t>(random.Below(100));
  const std::uint64_t count = picture.count + 1;
  v1::TxnArgs txn;
  Expect(&txn, "customers", customer.name, std::to_string(picture.count));
  const auto change = [&](std::size_t account, std::int64_t by) {
    const std::int64_t before = picture.balances[account];
    Expect(&txn, "accounts", AccountName(account), std::to_string(before));
    Put(&txn, "accounts", AccountName(account), std::to_string(before + by));
  };
  change(transfer.from, -transfer.amount);
  change(transfer.to, transfer.amount);
  Put(&txn, "customers", customer.name, std::to_string(count));
  customer.attempted = std::max(customer.attempted, count);
  customer.tried[count].push_back(transfer);
  const std::size_t number = customer.tried[count].size() - 1;
  ++under_way_;
  cluster_.Client(cluster_.AnyRouter(),
                  Request(customer, "txn", v1::MODE_RW, txn.SerializeAsString(), true),
                  [this, i, count, number](const v1::ClientResponse& response) {
                    --under_way_;
                    Customer& c = customers_[i];
                    Transfer& t = c.tried[count][number];
                    const Status status = StatusOf(response);
                    if (status.ok()) {
                      t.acknowledged = true;
                      c.seen = std::max(c.seen, count);
                      ++acknowledged_;
                    } else if (status.reason() != Reason::kConditionFailed) {
                      t.unknown = true;
                      ++unknown_;
                    }
                    Later(i);
                  });
}

// Every count up to the last one was made by one transfer: the acknowledged one, or else one whose
// outcome nobody told. If that is one, the balances are known to the last unit.
void Accounts::Settle(const Customer& customer, const Picture& picture) {
  std::vector<std::int64_t> balances(static_cast<std::size_t>(options_.accounts), options_.start);
  bool certain = true;
  for (std::uint64_t count = 1; count <= customer.attempted; ++count) {
    const auto it = customer.tried.find(count);
    const Transfer* made = nullptr;
    int acknowledged = 0;
    int unknown = 0;
    if (it != customer.tried.end()) {
      for (const Transfer& t : it->second) {
        if (t.acknowledged || (t.unknown && acknowledged == 0)) made = &t;
        acknowledged += t.acknowledged ? 1 : 0;
        unknown += t.unknown ? 1 : 0;
      }
    }
    const std::string about = "transfer " + std::to_string(count);
    if (acknowledged > 1) return FailCustomer(customer, about + " was acknowledged twice");
    if (count > picture.count) {
      if (acknowledged > 0) return FailCustomer(customer, about + " was acknowledged and is lost");
      continue;
    }
    if (made == nullptr) {
      return FailCustomer(customer, about + " was made, but all who tried were told it was not");
    }
    if (acknowledged == 0 && unknown > 1) certain = false;
    balances[made->from] -= made->amount;
    balances[made->to] += made->amount;
  }
  if (certain && balances != picture.balances)
    FailCustomer(customer, "the balances are not those of its transfers");
}

bool Accounts::Verify(Duration limit) {
  stopping_ = true;
  for (std::size_t i = 0; i < customers_.size(); ++i) {
    if (!customers_[i].open) {
      FailCustomer(customers_[i], "could not be opened");
      continue;
    }
    auto scan = std::make_shared<Scan>();
    scan->customer = i;
    scan->mode = v1::MODE_RW;
    scan->last_look = true;
    NextPage(scan);
  }
  return cluster_.world().RunUntil([&] { return idle(); }, limit) && failures().empty();
}

}  // namespace etalon::sim
