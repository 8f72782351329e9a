// Random describe answers and shardBy declarations: whatever is accepted tiles exactly.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "placement/routing_table.h"
#include "placement/shard_by.h"

namespace {

// Takes numbers off the front of the input; zeros when it is used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::uint8_t Byte() { return at_ < size_ ? data_[at_++] : std::uint8_t{0}; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace etalon::placement;
  (void)ParseShardBy(std::string(reinterpret_cast<const char*>(data), size));
  Input in(data, size);
  DescribeAnswer answer;
  answer.modulus = in.Byte() % 32u;
  const int shards = in.Byte() % 8;
  for (int i = 0; i < shards; ++i) {
    answer.shard_names.push_back("s" + std::to_string(in.Byte() % 9));
    ShardInfo info;
    if (in.Byte() % 4 != 0) info.name = answer.shard_names.back();
    info.state = static_cast<ShardState>(in.Byte() % 5);
    const int residues = in.Byte() % 6;
    for (int r = 0; r < residues; ++r) info.residues.push_back(in.Byte() % 33u);
    if (in.Byte() % 16 != 0) answer.infos.push_back(std::move(info));
  }
  const auto table = RoutingTable::Derive(answer);
  if (!table.ok()) return 0;
  std::uint64_t owned = 0;
  for (const Claim& claim : table->shards()) owned += claim.residues.size();
  if (owned != table->modulus()) std::abort();
  return 0;
}
