#include "router/call/verdict.h"

namespace etalon::router {

namespace {

// A reason that this program does not know: the code decides.
Verdict JudgeCode(Code code) {
  switch (code) {
    case Code::kAborted:
    case Code::kUnavailable:
    case Code::kResourceExhausted:
      return Verdict::kBusy;
    case Code::kOk:
    case Code::kCancelled:
    case Code::kUnknown:
    case Code::kInvalidArgument:
    case Code::kDeadlineExceeded:
    case Code::kNotFound:
    case Code::kAlreadyExists:
    case Code::kPermissionDenied:
    case Code::kFailedPrecondition:
    case Code::kOutOfRange:
    case Code::kUnimplemented:
    case Code::kInternal:
    case Code::kDataLoss:
    case Code::kUnauthenticated:
      return Verdict::kFinal;
  }
  return Verdict::kFinal;
}

}  // namespace

Verdict Judge(const Status& status) {
  if (status.ok()) return Verdict::kFinal;
  switch (status.reason()) {
    case Reason::kWrongBucket:
    case Reason::kStaleEpoch:
    case Reason::kShardRetired:
      return Verdict::kReroute;
    case Reason::kTransferIsInProgress:
    case Reason::kBucketIsLocked:
      return Verdict::kMoving;
    case Reason::kNonMaster:
    case Reason::kMissingMaster:
      return Verdict::kNotLeader;
    case Reason::kStaleTopology:
    case Reason::kNoSuchReplicaset:
      return Verdict::kTopology;
    case Reason::kUnreachableReplicaset:
    case Reason::kStorageIsDisabled:
    case Reason::kUnformed:
    case Reason::kOverloaded:
    case Reason::kCollectionIncomplete:
    case Reason::kNoQuorum:
    case Reason::kDuplicateInFlight:
      return Verdict::kBusy;
    case Reason::kOutcomeUnknown:
      return Verdict::kUnknown;
    case Reason::kMoveToSelf:
    case Reason::kNoRouteToBucket:
    case Reason::kNonEmpty:
    case Reason::kUnknownBuckets:
    case Reason::kReplicasetIsLocked:
    case Reason::kInvalidCfg:
    case Reason::kBucketIsPinned:
    case Reason::kTooManyReceiving:
    case Reason::kBucketIsCorrupted:
    case Reason::kRouterIsDisabled:
    case Reason::kBucketInvalidUpdate:
    case Reason::kShardFenced:
    case Reason::kConditionFailed:
    case Reason::kKeyExists:
    case Reason::kKeyNotFound:
    case Reason::kUnknownSpace:
    case Reason::kUnknownFunction:
    case Reason::kTooLarge:
    case Reason::kBucketOutOfRange:
    case Reason::kTopologyConflict:
    case Reason::kForeignDisk:
    case Reason::kNewerFormat:
    case Reason::kCorrupt:
    case Reason::kDiskFull:
    case Reason::kDeadlinePassed:
    case Reason::kScanRestarted:
    case Reason::kTransferPending:
    case Reason::kModulusCap:
    case Reason::kQuarantined:
    case Reason::kMalformed:
    case Reason::kNoSpaceForTransfer:
    case Reason::kUnknownTransfer:
    case Reason::kSplitAborted:
    case Reason::kLogTooShort:
      return Verdict::kFinal;
    case Reason::kNone:
      break;
  }
  return JudgeCode(status.code());
}

}  // namespace etalon::router
