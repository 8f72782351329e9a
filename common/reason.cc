#include "common/reason.h"

namespace etalon {

std::string_view ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kNone: return "NONE";
    case Reason::kWrongBucket: return "WRONG_BUCKET";
    case Reason::kNonMaster: return "NON_MASTER";
    case Reason::kNoSuchReplicaset: return "NO_SUCH_REPLICASET";
    case Reason::kMoveToSelf: return "MOVE_TO_SELF";
    case Reason::kMissingMaster: return "MISSING_MASTER";
    case Reason::kTransferIsInProgress: return "TRANSFER_IS_IN_PROGRESS";
    case Reason::kUnreachableReplicaset: return "UNREACHABLE_REPLICASET";
    case Reason::kNoRouteToBucket: return "NO_ROUTE_TO_BUCKET";
    case Reason::kNonEmpty: return "NON_EMPTY";
    case Reason::kUnknownBuckets: return "UNKNOWN_BUCKETS";
    case Reason::kReplicasetIsLocked: return "REPLICASET_IS_LOCKED";
    case Reason::kBucketIsLocked: return "BUCKET_IS_LOCKED";
    case Reason::kInvalidCfg: return "INVALID_CFG";
    case Reason::kBucketIsPinned: return "BUCKET_IS_PINNED";
    case Reason::kTooManyReceiving: return "TOO_MANY_RECEIVING";
    case Reason::kStorageIsDisabled: return "STORAGE_IS_DISABLED";
    case Reason::kBucketIsCorrupted: return "BUCKET_IS_CORRUPTED";
    case Reason::kRouterIsDisabled: return "ROUTER_IS_DISABLED";
    case Reason::kBucketInvalidUpdate: return "BUCKET_INVALID_UPDATE";
    case Reason::kShardFenced: return "SHARD_FENCED";
    case Reason::kConditionFailed: return "CONDITION_FAILED";
    case Reason::kKeyExists: return "KEY_EXISTS";
    case Reason::kKeyNotFound: return "KEY_NOT_FOUND";
    case Reason::kUnknownSpace: return "UNKNOWN_SPACE";
    case Reason::kUnknownFunction: return "UNKNOWN_FUNCTION";
    case Reason::kTooLarge: return "TOO_LARGE";
    case Reason::kBucketOutOfRange: return "BUCKET_OUT_OF_RANGE";
    case Reason::kStaleEpoch: return "STALE_EPOCH";
    case Reason::kStaleTopology: return "STALE_TOPOLOGY";
    case Reason::kTopologyConflict: return "TOPOLOGY_CONFLICT";
    case Reason::kUnformed: return "UNFORMED";
    case Reason::kForeignDisk: return "FOREIGN_DISK";
    case Reason::kNewerFormat: return "NEWER_FORMAT";
    case Reason::kCorrupt: return "CORRUPT";
    case Reason::kDiskFull: return "DISK_FULL";
    case Reason::kOverloaded: return "OVERLOADED";
    case Reason::kDeadlinePassed: return "DEADLINE_PASSED";
    case Reason::kScanRestarted: return "SCAN_RESTARTED";
    case Reason::kShardRetired: return "SHARD_RETIRED";
    case Reason::kTransferPending: return "TRANSFER_PENDING";
    case Reason::kModulusCap: return "MODULUS_CAP";
    case Reason::kCollectionIncomplete: return "COLLECTION_INCOMPLETE";
    case Reason::kQuarantined: return "QUARANTINED";
    case Reason::kNoQuorum: return "NO_QUORUM";
    case Reason::kOutcomeUnknown: return "OUTCOME_UNKNOWN";
    case Reason::kMalformed: return "MALFORMED";
    case Reason::kNoSpaceForTransfer: return "NO_SPACE_FOR_TRANSFER";
    case Reason::kDuplicateInFlight: return "DUPLICATE_IN_FLIGHT";
    case Reason::kUnknownTransfer: return "UNKNOWN_TRANSFER";
    case Reason::kSplitAborted: return "SPLIT_ABORTED";
    case Reason::kLogTooShort: return "LOG_TOO_SHORT";
  }
  return "UNKNOWN";
}

}  // namespace etalon
