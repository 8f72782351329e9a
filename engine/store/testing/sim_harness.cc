// The memory store on a simulated disk.
#include "common/check.h"
#include "engine/store/memory_store.h"
#include "engine/store/testing/harness.h"
#include "sim/world/world.h"

namespace etalon::store {
namespace {

constexpr Duration kStuck = std::chrono::hours(1);

class SimHarness final : public Harness {
 public:
  explicit SimHarness(std::uint64_t seed)
      : world_(seed), env_(world_.AddNode(kNode)), factory_(env_.disk) {}

  Disk& disk() override { return env_.disk; }
  StoreFactory& factory() override { return factory_; }

  void Step() override {
    int asked = 0;
    ETALON_CHECK(world_.RunUntil([&asked] { return asked++ == 1; }, kStuck),
                 "nothing is under way");
  }
  void Idle(Random& random) override {
    world_.RunFor(random.Between(Duration(0), Duration(std::chrono::milliseconds(2))));
  }
  void Crash() override {
    world_.Crash(kNode);
    world_.Restart(kNode);
  }

 private:
  static constexpr char kNode[] = "node";

  sim::SimWorld world_;
  Env env_;
  MemoryStoreFactory factory_;
};

}  // namespace

std::unique_ptr<Harness> NewHarness(std::uint64_t seed) {
  return std::make_unique<SimHarness>(seed);
}

}  // namespace etalon::store
