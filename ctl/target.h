// The collection that a command is about: found through the operator's endpoints.json, asked
// through gRPC.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "etalon/v1/admin.pb.h"
#include "etalon/v1/router.pb.h"
#include "rpc/client/router_client.h"
#include "rpc/client/storage_client.h"

namespace etalon::ctl {

struct Replica {
  std::string name;
  std::string shard;
  std::string address;
  std::optional<v1::InfoResponse> info;  // nullopt: does not answer
};

struct Router {
  std::string name;
  std::string address;
  std::optional<v1::RouterInfoResponse> info;
};

class Target {
 public:
  // NOT_FOUND when DIR has no endpoints.json; the sentence says how to start a collection.
  static Result<Target> Open(const std::string& data_dir, Duration timeout);

  // Asks every process, at the same time.
  void Observe();

  const std::string& data_dir() const { return data_dir_; }
  const std::vector<Replica>& replicas() const { return replicas_; }
  const std::vector<Router>& routers() const { return routers_; }
  std::vector<std::string> Shards() const;
  // The leader of a shard as observed; UNAVAILABLE/MISSING_MASTER.
  Result<const Replica*> Leader(const std::string& shard) const;
  Result<const Replica*> Find(const std::string& replica) const;
  // UID of a shard; NOT_FOUND with the names there are.
  Result<std::uint64_t> Uid(const std::string& shard) const;
  std::string NameOf(std::uint64_t uid) const;  // the UID in hex if unknown

  rpc::StorageClient& storage(const Replica& replica);
  rpc::RouterClient& router();  // of the first one that answers, else the first
  std::vector<std::string> router_addresses() const;
  Duration timeout() const { return timeout_; }

 private:
  std::string data_dir_;
  Duration timeout_{};
  std::vector<Replica> replicas_;
  std::vector<Router> routers_;
  std::map<std::string, std::unique_ptr<rpc::StorageClient>> storages_;
  std::unique_ptr<rpc::RouterClient> router_;
};

}  // namespace etalon::ctl
