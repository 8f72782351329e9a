#include "sim/checkers/log_reader.h"

#include <vector>

#include "etalon/v1/log.pb.h"

namespace etalon::sim {

bool ForEachControl(const storage::Shard& shard, LogIndex from,
                    const std::function<void(LogIndex, const v1::Control&)>& f) {
  constexpr std::uint64_t kBytes = 1u << 20;
  const LogIndex end = shard.log().Last().Next();
  while (from < end) {
    std::vector<consensus::Entry> entries;
    if (shard.log().Read(from, end, kBytes, true, false, &entries) != consensus::Log::Answer::kOk ||
        entries.empty())
      return false;
    for (const consensus::Entry& e : entries) {
      v1::LogEntry entry;
      if (e.kind == consensus::EntryKind::kCommands &&
          entry.ParseFromArray(e.data.data(), static_cast<int>(e.data.size())) &&
          entry.has_control())
        f(e.index, entry.control());
    }
    from = entries.back().index.Next();
  }
  return true;
}

}  // namespace etalon::sim
