// Domain reasons of a failure. Programs decide on the reason, never on the text. Numbers are
// contracts: they cross the wire (proto/etalon/v1/common.proto, Reason) and stand in
// docs/errors.md. Names and numbers below 100 are VShard's.
#pragma once

#include <cstdint>
#include <string_view>

namespace etalon {

enum class Reason : std::uint16_t {
  kNone = 0,
  kWrongBucket = 1,       // the bucket is not here; the hint may name where it is
  kNonMaster = 2,         // this replica is not the leader; the hint may name it
  kNoSuchReplicaset = 4,  // a shard that this topology does not know
  kMoveToSelf = 5,
  kMissingMaster = 6,
  kTransferIsInProgress = 7,  // writes wait for the end of a move
  kUnreachableReplicaset = 8,
  kNoRouteToBucket = 9,
  kNonEmpty = 10,
  kUnknownBuckets = 18,
  kReplicasetIsLocked = 19,
  kBucketIsLocked = 22,
  kInvalidCfg = 23,
  kBucketIsPinned = 24,
  kTooManyReceiving = 25,
  kStorageIsDisabled = 33,
  kBucketIsCorrupted = 34,
  kRouterIsDisabled = 35,
  kBucketInvalidUpdate = 39,  // a transition that the table of bucket states does not have

  kShardFenced =
      100,  // another split task holds this shard; the hint carries its switch index and ID
  kConditionFailed = 101,  // a condition of a transaction did not hold; the hint carries its number
  kKeyExists = 102,
  kKeyNotFound = 103,
  kUnknownSpace = 104,
  kUnknownFunction = 105,
  kTooLarge = 106,  // a value, transaction or frame over its limit
  kBucketOutOfRange = 107,
  kStaleEpoch = 108,
  kStaleTopology = 109,     // the caller must load the newer topology named in the hint
  kTopologyConflict = 110,  // one version, two contents
  kUnformed = 111,          // the disk belongs to no shard yet
  kForeignDisk = 112,       // the disk belongs to another collection, shard or replica
  kNewerFormat = 113,       // written by a newer version of the program
  kCorrupt = 114,           // a checksum or a structure on disk or on the wire is wrong
  kDiskFull = 115,
  kOverloaded = 116,  // a bounded queue is full: back off
  kDeadlinePassed = 117,
  kScanRestarted = 118,  // the bucket moved: the scan of it starts again
  kShardRetired = 119,
  kTransferPending = 120,  // refused while a transfer of the bucket or a row in flight is open
  kModulusCap = 121,
  kCollectionIncomplete = 122,  // not every shard is formed yet
  kQuarantined = 123,
  kNoQuorum = 124,
  kOutcomeUnknown = 125,      // the call may or may not have been applied; it had no request ID
  kMalformed = 126,           // a message or argument that cannot be understood
  kNoSpaceForTransfer = 127,  // the target's disk has no head-room
  kDuplicateInFlight = 128,   // the same request ID is being executed
  kUnknownTransfer = 129,
  kSplitAborted = 130,  // this task ID was aborted: use a new one
  kLogTooShort = 131,   // what was asked for has been trimmed away
};

// "WRONG_BUCKET"; "UNKNOWN" for a number that this program does not know.
std::string_view ReasonName(Reason reason);

}  // namespace etalon
