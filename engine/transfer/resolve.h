// The two resolution tables of a transfer (docs/protocols/transfer.md), each one function with one
// switch. Pure.
//
// Facts that may only be concluded from an answer to a question of this leader are marked (asked);
// the machines see to that and let only a leader judge that has applied an entry of its term and
// whose leadership is confirmed.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "common/ids.h"
#include "engine/bucket/rows.h"
#include "etalon/v1/peer.pb.h"

namespace etalon::transfer {

// ---- the target holds RECEIVING(x)
// --------------------------------------------------------------------------------

// What the source says about x (asked), first match.
enum class SourceSays : std::uint8_t {
  kNothing,        // no answer with a lease, or of a lower term
  kCarries,        // a row carries x: ACTIVE (open) or SENDING
  kSentToMe,       // SENT(x), destination my UID
  kSentElsewhere,  // SENT(x) otherwise
  kTookLeave,      // GARBAGE(x), or left names x: it was told that I am active
  kGone,           // applied index >= x, nothing carries x
  kNeverOpened,    // applied index < x
  kRemoved,        // its UID is in the topology's list of removed shards
};

enum class TargetVerdict : std::uint8_t {
  kWait,
  kActivate,
  kGarbage,
  kGarbageIfUnprepared,  // fails at apply once prepared
  kHold,                 // neither activate nor delete; alert
};

TargetVerdict ResolveTarget(SourceSays says, bool prepared);

// `self` is the target's UID. `answer` must be about x and carry every bucket of its set, at its
// level or above.
SourceSays ReadSourceAnswer(const v1::Answer& answer, const TransferId& x, ShardUid self);

// ---- the source's rows carry x
// ------------------------------------------------------------------------------------

enum class SourceRow : std::uint8_t { kOpen, kSending, kSent, kGarbage };

// What is known of the target, first match.
enum class TargetSays : std::uint8_t {
  kNothing,         // no answer with a lease
  kRefused,         // it refused x, found a mismatch, or x is gone after it had it
  kPrepared,        // RECEIVING(x) and prepared
  kOwns,            // for each bucket own >= e + 1, whatever row or none
  kKnowsNothing,    // anything else with own < e + 1 (asked)
  kRemoved,         // its UID is removed; not everybody has answered yet
  kRemovedOwned,    // removed; for each bucket, at the finest level answered, somebody has own > e
                    // (asked)
  kRemovedUnowned,  // removed; everybody answered, and it is not so (asked)
};

struct SourceFacts {
  SourceRow row = SourceRow::kOpen;
  bool mine = false;  // opened in this leader's term, so this leader has the capture and the stream
  TargetSays says = TargetSays::kNothing;
  bool expired = false;  // open: no progress within the bound; SENDING: for 1 s
};

enum class SourceVerdict : std::uint8_t {
  kWait,
  kAbort,
  kCommit,    // SENT
  kActivate,  // tell the target
  kHold,      // keep the data; alert LOST
  kAskEverybody,
  kGarbage,
  kRemove,
};

SourceVerdict ResolveSource(const SourceFacts& facts);

// `set` and `level` are the transfer's, at the source.
TargetSays ReadTargetAnswer(const v1::Answer& answer, const bucket::Outgoing& transfer,
                            std::uint32_t bucket_count);

// Whether for each bucket of the set, at the finest level answered, somebody has own > e.
bool SomebodyOwnsEach(const std::map<ShardUid, v1::Answer>& answers,
                      const bucket::Outgoing& transfer, std::uint32_t bucket_count);

}  // namespace etalon::transfer
