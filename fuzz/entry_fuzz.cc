// Random bytes as entries of a shard's log. Whatever is committed must be applied: an outcome, or a
// status that stops the replica, never a crash; and what is in memory must be what a restart loads.
#include <cstdint>
#include <memory>
#include <string_view>

#include "common/bytes.h"
#include "common/check.h"
#include "engine/bucket/map_store.h"
#include "engine/bucket/state_machine.h"

namespace etalon::bucket {
namespace {

class Nobody final : public Observer {
 public:
  void OnRow(std::uint32_t, const Row*) override {}
  void OnRebase(std::uint8_t) override {}
  void OnOpened(const Outgoing&) override {}
  void OnOutgoingChanged(const TransferId&) override {}
  void OnIncomingChanged(const TransferId&) override {}
  void OnDataKey(std::uint32_t, std::string_view) override {}
  void OnSplit(const SplitTask&) override {}
  void OnTopology() override {}
  void OnSettings() override {}
};

// Shard 1 of three, with buckets 0 to 3 of 8.
v1::FormRequest Form() {
  v1::FormRequest request;
  request.set_collection(1);
  request.set_shard(1);
  v1::MemberInfo& member = *request.add_members();
  member.set_member(1);
  member.set_name("r");
  request.add_ranges()->set_last(3);
  v1::Topology& topology = *request.mutable_topology();
  topology.set_version(1);
  topology.set_collection(1);
  topology.set_bucket_count(8);
  topology.set_complete(true);
  for (std::uint64_t uid = 1; uid <= 3; ++uid) {
    v1::ShardInfo& shard = *topology.add_shards();
    shard.set_uid(uid);
    shard.set_name(std::to_string(uid));
  }
  v1::Space& space = *topology.add_spaces();
  space.set_name("s");
  space.set_number(1);
  return request;
}

// The input is a row of (u8 kind of entry, be16 size, bytes); the last one takes what is left.
void Run(std::string_view in) {
  static const v1::FormRequest* const form = new v1::FormRequest(Form());
  testing::MapStore store;
  Nobody nobody;
  Result<store::Batch> batch = StateMachine::FormState(*form);
  ETALON_CHECK(batch.ok() && store.Write(std::move(*batch)).ok(), "the shard is formed");
  Result<std::unique_ptr<StateMachine>> loaded = StateMachine::Load(store, nobody);
  ETALON_CHECK(loaded.ok(), "and loads");
  StateMachine& sm = **loaded;
  while (!in.empty()) {
    const auto kind = static_cast<std::uint8_t>(in.front());
    in.remove_prefix(1);
    std::uint16_t size = 0;
    if (!GetBe16(&in, &size) || size > in.size()) size = static_cast<std::uint16_t>(in.size());
    const consensus::Entry entry{sm.applied_index().Next(), Term(1),
                                 static_cast<consensus::EntryKind>(kind % 4), in.substr(0, size)};
    in.remove_prefix(size);
    const auto done = sm.Apply(
        {&entry, 1}, [](const consensus::Entry&) { return std::vector<v1::MemberInfo>(); });
    if (!done.ok()) {
      ETALON_CHECK(done.status().reason() == Reason::kNewerFormat, "the store does not fail");
      break;
    }
  }
  const auto again = StateMachine::Load(store, nobody);
  ETALON_CHECK(again.ok(), "what was applied can be loaded");
  ETALON_CHECK((*again)->rows() == sm.rows() && (*again)->marks() == sm.marks() &&
                   (*again)->outgoing() == sm.outgoing() && (*again)->incoming() == sm.incoming() &&
                   (*again)->splits() == sm.splits() &&
                   (*again)->live_request_ids() == sm.live_request_ids(),
               "memory is what a restart loads");
}

}  // namespace
}  // namespace etalon::bucket

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  etalon::bucket::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
