// Writing and reading both kinds of store: batches of 1, 16 and 256 puts of 100 bytes, and point
// reads.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "common/bytes.h"
#include "common/check.h"
#include "common/random.h"
#include "engine/store/keys.h"
#include "engine/store/memory_store.h"
#include "engine/store/rocksdb_store.h"

namespace etalon::store {
namespace {

constexpr std::uint32_t kBucketCount = 3000;
constexpr std::uint64_t kKeys = 200'000;
constexpr std::size_t kValueBytes = 100;

// No checkpoint is taken here, so nothing reaches a disk or an executor.
class NoDisk final : public Disk {
 public:
  void Submit(DiskJob, Done) override {}
  Result<std::vector<std::string>> List(std::string_view) override { return NotFound("no disk"); }
  Result<std::string> Read(std::string_view, std::uint64_t, std::uint64_t) override {
    return NotFound("no disk");
  }
  Result<std::uint64_t> Size(std::string_view) override { return NotFound("no disk"); }
  Result<std::uint64_t> FreeBytes() override { return NotFound("no disk"); }
};

class NoExecutor final : public Executor {
 public:
  void Post(Task) override {}
  TimerId PostAt(SteadyTime, Task) override { return 1; }
  void Cancel(TimerId) override {}
};

struct Memory {
  NoDisk disk;
  MemoryStoreFactory factory{disk};
  std::unique_ptr<Store> store = std::move(factory.Open("s", OpenMode::kFresh)).value();
};

struct RocksDb {
  static std::string NewRoot() {
    std::string root = "/tmp/etalon-store-bench-XXXXXX";
    ETALON_CHECK(mkdtemp(root.data()) != nullptr, "no temporary directory");
    return root;
  }
  static RocksDbOptions Options(const std::string& root) {
    RocksDbOptions options;
    options.root = root;
    return options;
  }

  std::string root = NewRoot();
  NoExecutor executor;
  std::unique_ptr<StoreFactory> factory = NewRocksDbFactory(executor, Options(root));
  std::unique_ptr<Store> store = std::move(factory->Open("s", OpenMode::kFresh)).value();

  ~RocksDb() {
    store.reset();
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
};

std::string KeyOf(std::uint64_t number) {
  std::string name;
  PutBe64(&name, number);
  return DataKey(RoutingValue(number * 0x9E3779B97F4A7C15u), kBucketCount, SpaceId(1), name);
}

void MustWrite(Store& store, Batch&& batch) {
  Status status = store.Write(std::move(batch));
  while (status.reason() == Reason::kOverloaded) {
    std::this_thread::yield();
    status = store.Write(std::move(batch));
  }
  ETALON_CHECK(status.ok(), status.message());
}

template <typename Kind>
void Put(benchmark::State& state) {
  Kind kind;
  Random random(1);
  const std::string value(kValueBytes, 'v');
  for (auto _ : state) {
    Batch batch;
    for (std::int64_t i = 0; i < state.range(0); ++i) batch.Put(KeyOf(random.Below(kKeys)), value);
    MustWrite(*kind.store, std::move(batch));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

template <typename Kind>
void Get(benchmark::State& state) {
  Kind kind;
  const std::string value(kValueBytes, 'v');
  for (std::uint64_t i = 0; i < kKeys;) {
    Batch batch;
    for (int n = 0; n < 200 && i < kKeys; ++n) batch.Put(KeyOf(i++), value);
    MustWrite(*kind.store, std::move(batch));
  }
  Random random(2);
  for (auto _ : state) {
    const auto found = kind.store->Get(KeyOf(random.Below(kKeys)));
    ETALON_CHECK(found.ok() && found->has_value(), "every key was put");
  }
  state.SetItemsProcessed(state.iterations());
}

// Dropping a bucket of 100 records while reads go on: every range delete must be met by few of
// them.
template <typename Kind>
void DropBucket(benchmark::State& state) {
  Kind kind;
  const std::string value(kValueBytes, 'v');
  std::uint64_t bucket = 0;
  for (auto _ : state) {
    const BucketId id{0, static_cast<std::uint32_t>(bucket++ % kBucketCount)};
    Batch batch;
    for (std::uint64_t i = 0; i < 100; ++i) {
      batch.Put(DataKey(RoutingValue(id.number + kBucketCount * i), kBucketCount, SpaceId(1), "k"),
                value);
    }
    MustWrite(*kind.store, std::move(batch));
    const KeyRange range = BucketRange(id, kBucketCount);
    Batch drop;
    drop.DeleteRange(range.begin, range.end);
    MustWrite(*kind.store, std::move(drop));
    const auto found = kind.store->Get(range.begin);
    ETALON_CHECK(found.ok() && !found->has_value(), "it was dropped");
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(Put<Memory>)->Arg(1)->Arg(16)->Arg(256);
BENCHMARK(Put<RocksDb>)->Arg(1)->Arg(16)->Arg(256);
BENCHMARK(Get<Memory>);
BENCHMARK(Get<RocksDb>);
BENCHMARK(DropBucket<Memory>)->Iterations(10'000);
BENCHMARK(DropBucket<RocksDb>)->Iterations(10'000);

}  // namespace
}  // namespace etalon::store

BENCHMARK_MAIN();
