// Random bytes as messages from another node, to a storage that serves and to a router: they may be
// refused or dropped, but nothing ends and nothing is lost.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sim/cluster/cluster.h"

namespace {

struct Served {
  Served() : world(1), cluster(world, Options()) {
    if (!cluster.Form(std::chrono::seconds(30))) std::abort();
  }
  static etalon::sim::ClusterOptions Options() {
    etalon::sim::ClusterOptions options;
    options.shards = options.shards_with_buckets = options.replicas = 1;
    return options;
  }
  etalon::sim::SimWorld world;
  etalon::sim::Cluster cluster;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Served served;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto name = etalon::sim::Cluster::StorageName(0, 0);
  served.cluster.storage(name)->OnMessage("stranger", etalon::Lane::kControl, bytes);
  served.cluster.router(etalon::sim::Cluster::RouterName(0))
      ->OnMessage("stranger", etalon::Lane::kControl, bytes);
  served.world.RunFor(std::chrono::milliseconds(1));
  if (!served.cluster.fatal().empty()) std::abort();
  return 0;
}
