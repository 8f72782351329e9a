// The collection as its processes show it: polled from every storage, for the live table and the
// final checks.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "etalon/v1/admin.pb.h"
#include "rpc/client/router_client.h"
#include "rpc/client/storage_client.h"

namespace etalon::show {

struct Endpoints {
  struct Storage {
    std::string name;
    std::string shard;
    std::string address;
    int pid = 0;
  };
  std::vector<std::string> routers;  // addresses
  std::vector<Storage> storages;
};

// Reads DATA/endpoints.json, which the operator keeps current.
Result<Endpoints> ReadEndpoints(const std::string& data_dir);

struct ShardView {
  std::string name;
  int replicas = 0;
  int alive = 0;
  std::optional<v1::InfoResponse> leader;
};

class View {
 public:
  explicit View(std::string data_dir) : data_dir_(std::move(data_dir)) {}

  // Asks everybody, each with a short time-out.
  void Poll();
  const std::map<std::string, ShardView>& shards() const { return shards_; }
  const Endpoints& endpoints() const { return endpoints_; }
  // Shards that hold buckets and have a leader.
  std::size_t serving() const;
  // Every bucket is owned, nothing is in flight, and each of `shards` shards holds exactly its
  // etalon.
  bool Settled(std::size_t shards, std::uint64_t buckets, std::string* why) const;

  // Every replica of every shard at one applied index with one checksum. Nobody may write
  // meanwhile.
  Status ReplicasEqual();

 private:
  rpc::StorageClient& Client(const std::string& address);

  const std::string data_dir_;
  Endpoints endpoints_;
  std::map<std::string, std::unique_ptr<rpc::StorageClient>> clients_;
  std::map<std::string, ShardView> shards_;
};

// The table that is drawn over itself on a terminal.
std::string RenderShards(const std::map<std::string, ShardView>& shards);

}  // namespace etalon::show
