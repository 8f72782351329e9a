// For tests: the records of a shard as a map, and what calls do to it. Knows nothing of batches,
// levels, store keys or logs.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "engine/bucket/request_ids.h"
#include "etalon/v1/call.pb.h"

namespace etalon::bucket::testing {

struct Model {
  using Key = std::tuple<std::uint64_t, std::uint16_t, std::string>;  // routing value, space, key
  using RequestName = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;
  struct Answer {
    std::string status;
    std::uint64_t end = 0;
  };

  std::map<Key, std::string> records;
  std::map<RequestName, Answer> answers;

  static std::uint16_t Space(const std::string& name) { return name == "orders" ? 1 : 2; }
  std::optional<std::string> Find(const Key& key) const {
    const auto it = records.find(key);
    if (it == records.end()) return std::nullopt;
    return it->second;
  }

  // The words of what a call must give, once it is let through to its bucket.
  std::string Run(const v1::Call& call, std::uint64_t now) {
    const RequestName name{call.routing_value(), call.request().client(),
                           call.request().sequence()};
    const bool named = call.request().client() != 0;
    if (named && answers.contains(name) && answers[name].end > now) return answers[name].status;
    std::string status = Evaluate(call);
    if (named) {
      const std::uint64_t ttl = call.request().ttl_millis();
      answers[name] = {status, now + (ttl == 0 ? kDefaultLifeMillis : ttl)};
    }
    return status;
  }

  std::string Evaluate(const v1::Call& call) {
    const std::uint64_t v = call.routing_value();
    if (call.function() == "txn") {
      v1::TxnArgs args;
      EXPECT_TRUE(args.ParseFromString(call.args()));
      for (int i = 0; i < args.conditions_size(); ++i) {
        const v1::Condition& c = args.conditions(i);
        const auto found =
            Find({c.has_routing_value() ? c.routing_value() : v, Space(c.space()), c.key()});
        const bool holds = c.kind() == v1::Condition::EXISTS   ? found.has_value()
                           : c.kind() == v1::Condition::ABSENT ? !found.has_value()
                                                               : found == c.value();
        if (!holds) return "CONDITION_FAILED " + std::to_string(i);
      }
      for (const v1::Mutation& m : args.mutations()) {
        const Key key{m.has_routing_value() ? m.routing_value() : v, Space(m.space()), m.key()};
        if (m.delete_()) {
          records.erase(key);
        } else {
          records[key] = m.put();
        }
      }
      return "NONE";
    }
    v1::PutArgs args;  // DeleteArgs has the same first fields
    EXPECT_TRUE(args.ParseFromString(call.args()));
    const Key key{v, Space(args.space()), args.key()};
    if (call.function() == "insert" && Find(key)) return "KEY_EXISTS";
    if (call.function() == "update" && !Find(key)) return "KEY_NOT_FOUND";
    if (call.function() == "delete") {
      records.erase(key);
    } else {
      records[key] = args.value();
    }
    return "NONE";
  }

  void DropBucket(std::uint32_t bucket, std::uint64_t modulus) {
    std::erase_if(records, [&](const auto& r) { return std::get<0>(r.first) % modulus == bucket; });
    std::erase_if(answers, [&](const auto& r) { return std::get<0>(r.first) % modulus == bucket; });
  }
};

}  // namespace etalon::bucket::testing
