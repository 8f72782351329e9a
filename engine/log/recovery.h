// Finds out what a directory of segments holds: which records, in which order, and whether
// something is missing. The rules and why they are sound: docs/formats.md, "Log segments".
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/status.h"
#include "engine/log/format.h"
#include "engine/log/writer.h"
#include "env/disk.h"

namespace etalon::log {

struct Found {
  Tail tail;  // no segments: nothing was ever durable
  std::uint64_t torn_bytes = 0;
};

// Is given every record that counts, in order. Its failure is annotated with file and offset and
// ends the recovery.
using RecordSink = std::function<Status(Position, const Content&, std::string_view payload)>;

// Only reads. A directory that does not exist is an empty one.
Result<Found> Recover(Disk& disk, const std::string& dir, const RecordSink& sink);

}  // namespace etalon::log
