#include "bench/show/import.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

namespace etalon::show {

namespace {

constexpr std::size_t kInFlight = 256;
constexpr std::size_t kPackagesInTxn = 32;
constexpr std::size_t kBytesInTxn = 512u << 10;

struct State {
  State(Client& c, std::function<void(std::uint64_t)> p) : client(c), progress(std::move(p)) {}

  Client& client;
  Window window{kInFlight};
  std::function<void(std::uint64_t)> progress;
  std::atomic<std::uint64_t> packages{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> failed{0};
  std::mutex mutex;
  std::string first_failure;
};

// The packages of one source from `from` on: one transaction after the other, each moving the
// counter on.
void ImportSource(State& state, const std::string& source, const std::vector<Package>& packages,
                  std::size_t from) {
  v1::TxnArgs txn;
  v1::Condition& condition = *txn.add_conditions();
  condition.set_space("sources");
  condition.set_key(source);
  condition.set_kind(from == 0 ? v1::Condition::ABSENT : v1::Condition::EQUALS);
  if (from > 0) condition.set_value(std::to_string(from));
  std::size_t to = from;
  std::size_t bytes = 0;
  while (to < packages.size() && to - from < kPackagesInTxn && bytes < kBytesInTxn) {
    v1::Mutation& mutation = *txn.add_mutations();
    mutation.set_space("packages");
    mutation.set_key(packages[to].key);
    mutation.set_put(packages[to].json);
    bytes += packages[to].json.size();
    ++to;
  }
  v1::Mutation& counter = *txn.add_mutations();
  counter.set_space("sources");
  counter.set_key(source);
  counter.set_put(std::to_string(to));
  state.client.Txn(
      source, txn,
      [&state, &source, &packages, from, to, bytes](const Status& status, const std::string&) {
        if (!status.ok()) {
          state.failed += packages.size() - from;
          {
            std::lock_guard lock(state.mutex);
            if (state.first_failure.empty())
              state.first_failure = source + ": " + status.ToString();
          }
          return state.window.Leave();
        }
        state.bytes += bytes;
        state.progress(state.packages += to - from);
        if (to < packages.size()) return ImportSource(state, source, packages, to);
        state.window.Leave();
      });
}

}  // namespace

ImportResult Import(Client& client, const std::map<std::string, std::vector<Package>>& index,
                    const std::function<void(std::uint64_t)>& progress) {
  State state(client, progress);
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& [source, packages] : index) {
    state.window.Enter();
    ImportSource(state, source, packages, 0);
  }
  state.window.Drain();
  ImportResult out;
  out.packages = state.packages;
  out.bytes = state.bytes;
  out.failed = state.failed;
  out.first_failure = state.first_failure;
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

}  // namespace etalon::show
