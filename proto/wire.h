// Between the types of common/ and the messages that cross the wire.
//
// FromProto never fails: what a newer program sends and this one does not know becomes the nearest
// honest value (an unknown code is Code::kUnknown; an unknown reason keeps its number and prints as
// UNKNOWN).
#pragma once

#include <google/protobuf/message_lite.h>

#include <string>

#include "common/ids.h"
#include "common/status.h"
#include "etalon/v1/common.pb.h"

namespace etalon {

v1::Status ToProto(const Status& status);
Status FromProto(const v1::Status& status);

v1::BucketId ToProto(const BucketId& bucket);
// A level above 255 is capped: no program makes one, and every range check refuses it.
BucketId FromProto(const v1::BucketId& bucket);

v1::TransferId ToProto(const TransferId& id);
TransferId FromProto(const v1::TransferId& id);

// The bytes of a message, the same for equal messages: maps are written in the order of their keys,
// which SerializeAsString leaves to a hash table.
std::string Serialize(const google::protobuf::MessageLite& message);

}  // namespace etalon
