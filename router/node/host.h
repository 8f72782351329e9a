// What the parts of a router ask of its node. Nothing here calls back into the caller: what follows
// from a question comes later, as news.
#pragma once

#include <cstdint>

#include "common/random.h"
#include "common/status.h"
#include "etalon/v1/peer.pb.h"
#include "etalon/v1/router.pb.h"
#include "router/call/call.h"

namespace etalon::router {

class Host : public Routing {
 public:
  virtual void Reply(const NodeName& client, const v1::ClientResponse& response) = 0;
  // Takes what an answer says about owners and leaders: a destination with its epoch, a leader with
  // its term, a topology version; an answer that contradicts the table; buckets in trouble.
  virtual void TakeHints(const CallMachine& call, const Status& status) = 0;
  // The same for one bucket of a map run, of a level that the table has reached; `asked` is whom
  // the table named. True when the table names somebody else now.
  virtual bool TakeOwnerHint(BucketId bucket, const Owner& asked, const Status& status) = 0;
  // The same for a map run that was refused as a whole.
  virtual void TakeReplicaHints(const NodeName& replica, const Status& status) = 0;
  // Somebody answers with buckets of that level. Fails when this collection cannot have it.
  virtual Status ReachLevel(std::uint32_t level) = 0;
  virtual void AskOwners(ShardUid contradicted) = 0;  // 0: nobody in particular
  virtual void AskReplicas(ShardUid shard) = 0;
  virtual void AskTopology() = 0;
  virtual void NoteSilence(const NodeName& replica) = 0;      // a try of a call ran out
  virtual void NoteUnreachable(const NodeName& replica) = 0;  // the transport knows no way to it
  virtual void ScheduleFlush() = 0;
  virtual SendResult SendMapRun(const NodeName& replica, const v1::MapRun& run) = 0;
  virtual Random& random() = 0;
};

}  // namespace etalon::router
