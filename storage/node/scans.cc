#include "storage/node/scans.h"

#include <algorithm>

#include "common/bytes.h"
#include "engine/store/keys.h"
#include "placement/modulus.h"

namespace etalon::storage {

namespace {

Status Restarted(std::string_view why) {
  return Aborted(Reason::kScanRestarted,
                 "the scan of this bucket starts again: " + std::string(why));
}

// Which scan, and where its next page begins: so that a page that is asked for again, because its
// answer was lost or the question came twice, is the same page.
std::string Cursor(std::uint64_t id, std::string_view next) {
  std::string cursor;
  PutBe64(&cursor, id);
  cursor += next;
  return cursor;
}

}  // namespace

Result<v1::ScanResult> Scans::Page(RoutingValue v, std::uint8_t level, const v1::ScanArgs& args,
                                   const bucket::StateMachine& state, const store::Store& store,
                                   SteadyTime now) {
  const std::uint32_t limit = args.limit() == 0 ? kDefaultLimit : args.limit();
  if (!args.cursor().empty()) {
    std::string_view from = args.cursor();
    std::uint64_t id = 0;
    if (!GetBe64(&from, &id) || from.empty()) {
      return InvalidArgument("the cursor is not one that a page of a scan returned");
    }
    auto it = open_.find(id);
    if (it == open_.end() || it->second.value != v)
      return Restarted("its cursor is not known here (any more)");
    if (from < it->second.begin || from >= it->second.end) {
      return InvalidArgument("the cursor is not one that a page of this scan returned");
    }
    std::string next;
    ETALON_ASSIGN_OR_RETURN(v1::ScanResult page, Read(it->second, from, limit, state, &next));
    if (next.empty()) {
      open_.erase(it);
    } else {
      it->second.expires = now + kLease;
      page.set_cursor(Cursor(id, next));
    }
    return page;
  }

  Scan scan;
  if (!args.space().empty()) {
    ETALON_ASSIGN_OR_RETURN(scan.space, state.FindSpace(args.space()));
  } else if (!args.start().empty() || !args.end().empty()) {
    return InvalidArgument("a scan from or to a key needs a space");
  }
  scan.bucket = state.BucketAt(v);
  scan.value = v;
  scan.whole_bucket = args.whole_bucket();
  if (scan.whole_bucket) {
    if (!args.start().empty() || !args.end().empty()) {
      return InvalidArgument("a scan of the whole bucket cannot start or end at a key");
    }
    const auto range = store::BucketRange(placement::BucketOf(v, state.bucket_count(), level),
                                          state.bucket_count());
    scan.begin = range.begin;
    scan.end = range.end;
  } else if (scan.space) {
    scan.begin = store::DataKey(v, state.bucket_count(), scan.space, args.start());
    scan.end = args.end().empty()
                   ? PrefixEnd(store::DataKey(v, state.bucket_count(), scan.space, ""))
                   : store::DataKey(v, state.bucket_count(), scan.space, args.end());
  } else {
    scan.begin = store::DataKey(v, state.bucket_count(), SpaceId(1), "");
    scan.end = store::DataKey(v, state.bucket_count(), store::kRequestSpace, "");
  }
  scan.snapshot = store.NewSnapshot();
  scan.expires = now + kLease;
  std::string next;
  ETALON_ASSIGN_OR_RETURN(v1::ScanResult page, Read(scan, scan.begin, limit, state, &next));
  if (!next.empty()) {
    if (open_.size() >= kMaxOpen)
      return ResourceExhausted("too many open scans on this replica: finish some first");
    std::uint64_t id = random_.NextId();
    while (open_.contains(id)) id = random_.NextId();
    page.set_cursor(Cursor(id, next));
    open_.emplace(id, std::move(scan));
  }
  return page;
}

// `*next`: the store key that the next page begins at; empty: this was the last one.
Result<v1::ScanResult> Scans::Read(const Scan& scan, std::string_view from, std::uint32_t limit,
                                   const bucket::StateMachine& state, std::string* next) const {
  v1::ScanResult page;
  std::uint64_t bytes = 0;
  auto it = scan.snapshot->NewIterator(from, scan.end);
  for (; it->Valid(); it->Next()) {
    ETALON_ASSIGN_OR_RETURN(const store::DataKeyParts parts,
                            store::ParseDataKey(it->key(), state.bucket_count()));
    if (parts.space == store::kRequestSpace) continue;
    if (scan.space && parts.space != scan.space) continue;
    const std::uint64_t size = it->key().size() + it->value().size();
    if (page.records_size() > 0 &&
        (page.records_size() >= static_cast<int>(limit) || bytes + size > kPageBytes)) {
      *next = std::string(it->key());
      return page;
    }
    bytes += size;
    v1::Record* record = page.add_records();
    record->set_space(std::string(state.SpaceName(parts.space)));
    record->set_key(std::string(parts.key));
    record->set_value(std::string(it->value()));
    record->set_routing_value(parts.value.value());
  }
  ETALON_RETURN_IF_ERROR(it->status());
  return page;
}

void Scans::OnBucketGone(std::uint32_t bucket) {
  std::erase_if(open_, [&](const auto& entry) { return entry.second.bucket == bucket; });
}

void Scans::Expire(SteadyTime now) {
  std::erase_if(open_, [&](const auto& entry) { return entry.second.expires <= now; });
}

std::uint32_t Scans::RefsOf(std::uint32_t bucket) const {
  return static_cast<std::uint32_t>(
      std::count_if(open_.begin(), open_.end(),
                    [&](const auto& entry) { return entry.second.bucket == bucket; }));
}

}  // namespace etalon::storage
