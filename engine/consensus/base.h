// The first record of a log: where it begins.
#pragma once

#include "common/status.h"
#include "common/unique_function.h"
#include "engine/consensus/types.h"
#include "engine/log/log.h"

namespace etalon::consensus {

// The base of a new shard: index 1 of term 1 with its first members, alike on all of them. A
// replica that joins later starts blank instead and gets these members with its first snapshot: the
// log itself does not hold them.
Snapshot FirstBase(Members members);

// Makes a blank log begin at `base`, to which the owner's state belongs, with a hard state of
// `term` (at least base.term) and no vote. done(OK), later: durably so; that very base without
// anything after it is success too, so the call can be repeated after a crash. FAILED_PRECONDITION,
// at once: the log holds something else.
//
// Order for the owner: the base first, then its own state of that index. A log with a base and no
// state is a half-made replica; a state and no log is a lost disk.
//
// Takes over the log's callbacks: the log has to be opened anew afterwards (not from within
// `done`).
Status WriteBase(log::SegmentedLog& log, const Snapshot& base, Term term,
                 UniqueFunction<void(Status)> done);

}  // namespace etalon::consensus
