#include "engine/transfer/resolve.h"

#include <algorithm>

#include "common/check.h"
#include "proto/wire.h"

namespace etalon::transfer {

TargetVerdict ResolveTarget(SourceSays says, bool prepared) {
  switch (says) {
    case SourceSays::kCarries:
      return TargetVerdict::kWait;
    case SourceSays::kSentToMe:
      // Unprepared: the source cannot have logged SENT without our word; one of us lost its disks.
      return prepared ? TargetVerdict::kActivate : TargetVerdict::kHold;
    case SourceSays::kSentElsewhere:
      return TargetVerdict::kHold;
    case SourceSays::kTookLeave:
      return TargetVerdict::kHold;
    case SourceSays::kGone:
      return TargetVerdict::kGarbage;
    case SourceSays::kNeverOpened:
      return prepared ? TargetVerdict::kHold : TargetVerdict::kGarbageIfUnprepared;
    case SourceSays::kRemoved:
      return TargetVerdict::kGarbage;
    case SourceSays::kNothing:
      return TargetVerdict::kWait;
  }
  return TargetVerdict::kWait;
}

SourceSays ReadSourceAnswer(const v1::Answer& answer, const TransferId& x, ShardUid self) {
  const auto names_x = [&](const v1::TransferId& id) { return FromProto(id) == x; };
  bool left = false;
  bool sent = false;
  bool to_me = true;
  for (const v1::BucketAnswer& b : answer.buckets()) {
    left |= b.marks().has_left() && names_x(b.marks().left());
    if (!b.row().has_transfer() || !names_x(b.row().transfer())) continue;
    switch (b.row().status()) {
      case v1::BUCKET_ACTIVE:
      case v1::BUCKET_PINNED:
      case v1::BUCKET_SENDING:
        return SourceSays::kCarries;
      case v1::BUCKET_SENT:
        sent = true;
        to_me &= b.destination() == self.value();
        break;
      case v1::BUCKET_GARBAGE:
        left = true;
        break;
      default:  // another status carries no outgoing transfer
        break;
    }
  }
  if (sent) return to_me ? SourceSays::kSentToMe : SourceSays::kSentElsewhere;
  if (left) return SourceSays::kTookLeave;
  return answer.applied_index() >= x.index.value() ? SourceSays::kGone : SourceSays::kNeverOpened;
}

SourceVerdict ResolveSource(const SourceFacts& f) {
  switch (f.row) {
    case SourceRow::kOpen:
      if (!f.mine) return SourceVerdict::kAbort;
      switch (f.says) {
        case TargetSays::kRefused:
        case TargetSays::kRemoved:
        case TargetSays::kRemovedOwned:
        case TargetSays::kRemovedUnowned:
          return SourceVerdict::kAbort;
        case TargetSays::kNothing:
        case TargetSays::kPrepared:
        case TargetSays::kOwns:
        case TargetSays::kKnowsNothing:
          break;
      }
      return f.expired ? SourceVerdict::kAbort : SourceVerdict::kWait;
    case SourceRow::kSending:
      if (!f.mine) return SourceVerdict::kAbort;
      if (f.says == TargetSays::kPrepared) return SourceVerdict::kCommit;
      if (f.says == TargetSays::kRefused) return SourceVerdict::kAbort;
      return f.expired ? SourceVerdict::kAbort : SourceVerdict::kWait;
    case SourceRow::kSent:
      switch (f.says) {
        case TargetSays::kOwns:
          return SourceVerdict::kGarbage;
        case TargetSays::kPrepared:
          return SourceVerdict::kActivate;
        case TargetSays::kKnowsNothing:
          return SourceVerdict::kHold;
        case TargetSays::kRemovedOwned:
          return SourceVerdict::kGarbage;
        case TargetSays::kRemovedUnowned:
          return SourceVerdict::kHold;
        case TargetSays::kRemoved:
          return SourceVerdict::kAskEverybody;
        case TargetSays::kNothing:
        case TargetSays::kRefused:  // about an earlier state of the row: proves nothing now
          return SourceVerdict::kWait;
      }
      return SourceVerdict::kWait;
    case SourceRow::kGarbage:
      return SourceVerdict::kRemove;
  }
  return SourceVerdict::kWait;
}

namespace {

// Calls visit(epoch e, answer for a bucket at the level of the answer) for each bucket of the set;
// false: one is missing or visit said false. An answer lists the bucket at its own level or finer.
template <class Visit>
bool ForEach(const v1::Answer& answer, const bucket::Outgoing& x, std::uint32_t bucket_count,
             Visit visit) {
  if (answer.level() < x.level || answer.level() > 32) return false;
  std::map<std::uint32_t, const v1::BucketAnswer*> by_number;
  for (const v1::BucketAnswer& b : answer.buckets()) by_number[b.bucket()] = &b;
  const std::uint64_t modulus = std::uint64_t{bucket_count} << x.level;
  const std::uint64_t end = std::uint64_t{bucket_count} << answer.level();
  for (const bucket::BucketEpoch& b : x.set) {
    for (std::uint64_t n = b.bucket; n < end; n += modulus) {
      const auto it = by_number.find(static_cast<std::uint32_t>(n));
      if (it == by_number.end() || !visit(b.epoch, *it->second)) return false;
    }
  }
  return true;
}

}  // namespace

TargetSays ReadTargetAnswer(const v1::Answer& answer, const bucket::Outgoing& x,
                            std::uint32_t bucket_count) {
  const auto owns = [](Epoch e, const v1::BucketAnswer& b) { return b.marks().own() > e.value(); };
  if (ForEach(answer, x, bucket_count, owns)) return TargetSays::kOwns;
  const auto prepared = [&](Epoch, const v1::BucketAnswer& b) {
    return b.prepared() && b.row().status() == v1::BUCKET_RECEIVING && b.row().has_transfer() &&
           FromProto(b.row().transfer()) == x.id;
  };
  if (ForEach(answer, x, bucket_count, prepared)) return TargetSays::kPrepared;
  return TargetSays::kKnowsNothing;
}

bool SomebodyOwnsEach(const std::map<ShardUid, v1::Answer>& answers, const bucket::Outgoing& x,
                      std::uint32_t bucket_count) {
  std::uint32_t finest = x.level;
  for (const auto& [shard, answer] : answers) finest = std::max(finest, answer.level());
  // own by (level of the answer, number)
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> own;
  for (const auto& [shard, answer] : answers) {
    for (const v1::BucketAnswer& b : answer.buckets()) {
      std::uint64_t& highest = own[{answer.level(), b.bucket()}];
      highest = std::max(highest, b.marks().own());
    }
  }
  const std::uint64_t modulus = std::uint64_t{bucket_count} << x.level;
  const std::uint64_t end = std::uint64_t{bucket_count} << finest;
  for (const bucket::BucketEpoch& b : x.set) {
    for (std::uint64_t n = b.bucket; n < end; n += modulus) {
      bool owned = false;
      for (std::uint32_t level = x.level; level <= finest && !owned; ++level) {
        const std::uint64_t at_level = n % (std::uint64_t{bucket_count} << level);
        const auto it = own.find({level, static_cast<std::uint32_t>(at_level)});
        owned = it != own.end() && it->second > b.epoch.value();
      }
      if (!owned) return false;
    }
  }
  return true;
}

}  // namespace etalon::transfer
