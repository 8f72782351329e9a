// The state beside the records, as bytes: docs/formats.md, "State beside the records".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"
#include "engine/bucket/rows.h"
#include "engine/store/keys.h"
#include "etalon/v1/log.pb.h"

namespace etalon::bucket {

std::string HeaderKey();
std::string TopologyKey();
std::string SettingsKey();
std::string RowKey(std::uint32_t bucket);
std::string MarksKey(std::uint32_t bucket);
std::string OutgoingKey(const TransferId& id);
std::string IncomingKey(const TransferId& id);     // all but the set: it changes with each chunk
std::string IncomingSetKey(const TransferId& id);  // the set: it may be large and never changes
std::string SplitKey(std::string_view task);

// [begin, end) of all keys of one kind, in the order of their numbers.
store::KeyRange RowKeys();
store::KeyRange MarksKeys();
store::KeyRange OutgoingKeys();
store::KeyRange IncomingKeys();
store::KeyRange IncomingSetKeys();
store::KeyRange SplitKeys();
// All keys of the state, those of request IDs (request_ids.h) too.
store::KeyRange StateKeys();

v1::Row ToProto(std::uint32_t bucket, const Row& row);
v1::Marks ToProto(std::uint32_t bucket, const Marks& marks);
v1::OutgoingTransfer ToProto(const Outgoing& transfer);
v1::IncomingTransfer ProgressToProto(const Incoming& transfer);  // all but the set
v1::IncomingTransfer SetToProto(const Incoming& transfer);       // nothing but the set
v1::SplitTask ToProto(const SplitTask& task);

Row FromProto(const v1::Row& row);
Marks FromProto(const v1::Marks& marks);
Outgoing FromProto(const v1::OutgoingTransfer& transfer);
Incoming FromProto(const v1::IncomingTransfer& progress, const v1::IncomingTransfer& set);
SplitTask FromProto(const v1::SplitTask& task);

}  // namespace etalon::bucket
