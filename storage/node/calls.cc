#include "storage/node/calls.h"

#include <algorithm>
#include <utility>

#include "placement/modulus.h"

namespace etalon::storage {

namespace {

bool IsReadFunction(std::string_view function) { return function == "get" || function == "scan"; }

Status HeldTooLong() {
  return Status(Code::kDeadlineExceeded, Reason::kTransferIsInProgress,
                "the deadline passed while the bucket was on its way to another shard");
}

Status ReadTooLate() { return DeadlineExceeded("the deadline passed before the read ran"); }

Status UnknownFunction(std::string_view function) {
  return Status(Code::kUnimplemented, Reason::kUnknownFunction,
                "there is no function '" + std::string(function.substr(0, 64)) +
                    "': use get, put, insert, update, delete, scan or txn");
}

}  // namespace

bool IsWriteFunction(std::string_view function) {
  return function == "put" || function == "insert" || function == "update" ||
         function == "delete" || function == "txn";
}

Calls::Calls(CallHost& host, Stats& stats, Random random)
    : host_(host), stats_(stats), scans_(random) {}

void Calls::Handle(const NodeName& from, std::string bytes, CallTicket::Sink sink) {
  CallTicket ticket;
  ticket.from = from;
  ticket.arrived = host_.Now();
  if (sink) ticket.sink = std::make_shared<CallTicket::Sink>(std::move(sink));
  v1::Call call;
  if (!call.ParseFromString(bytes)) {
    // Without an ID there is nobody to answer on a stream; a sink is answered all the same.
    host_.Reply(ticket, InvalidArgument("the call cannot be parsed"), {});
    return;
  }
  ticket.id = call.id();
  ticket.function = IsReadFunction(call.function()) || IsWriteFunction(call.function())
                        ? call.function()
                        : "other";
  ticket.value = RoutingValue(call.routing_value());
  const Duration timeout = call.timeout_millis() == 0
                               ? kDefaultTimeout
                               : Duration(std::chrono::milliseconds(call.timeout_millis()));
  ticket.deadline = Deadline::After(ticket.arrived, std::min(timeout, kMaxTimeout));
  const std::uint64_t size = bytes.size();
  if (queued_bytes_ + size > kMaxQueuedBytes) {
    host_.Reply(ticket, ResourceExhausted("too many calls are queued on this storage: back off"),
                {});
    return;
  }
  queued_bytes_ += size;
  ticket.bytes = std::move(bytes);
  if (IsReadFunction(call.function())) {
    HandleRead(std::move(ticket), std::move(call));
  } else if (IsWriteFunction(call.function())) {
    HandleWrite(std::move(ticket), call);
  } else {
    Finish(ticket, UnknownFunction(call.function()));
  }
}

void Calls::HandleWrite(CallTicket ticket, const v1::Call& call) {
  if (call.mode() != v1::MODE_RW) {
    return Finish(ticket,
                  InvalidArgument("'" + call.function() + "' writes: call it with mode rw"));
  }
  if (!host_.IsLeader()) return Finish(ticket, host_.NotLeader());
  if (Status s = CheckLevel(call); !s.ok()) return Finish(ticket, s);
  if (Status s = host_.State().CheckArguments(call); !s.ok()) return Finish(ticket, s);
  if (Status s = host_.WritesAllowed(); !s.ok()) return Finish(ticket, s);
  if (Status s = host_.State().CheckWrite(ticket.value, Epoch(call.epoch())); !s.ok()) {
    if (Hold(ticket)) return;
    return Finish(ticket, s);
  }
  writes_.push_back(std::move(ticket));
  if (!flush_scheduled_) {
    flush_scheduled_ = true;
    host_.Later([this] { Flush(); });
  }
}

Status Calls::CheckLevel(const v1::Call& call) const {
  const bucket::StateMachine& state = host_.State();
  if (call.has_level()) {
    const auto level = static_cast<std::uint8_t>(std::min<std::uint32_t>(call.level(), 255));
    ETALON_RETURN_IF_ERROR(placement::CheckLevel(state.bucket_count(), level));
  }
  return state.CheckLevel(call);
}

// A write of a bucket that is about to be given up waits: it is decided within milliseconds.
bool Calls::Hold(CallTicket& ticket) {
  auto it = held_.find(host_.State().BucketAt(ticket.value));
  if (it == held_.end() || held_bytes_ + ticket.bytes.size() > kMaxHeldBytes) return false;
  held_bytes_ += ticket.bytes.size();
  it->second.push_back(std::move(ticket));
  return true;
}

void Calls::Flush() {
  flush_scheduled_ = false;
  while (!writes_.empty()) {
    std::vector<CallTicket> batch;
    std::uint64_t bytes = 0;
    const SteadyTime now = host_.Now();
    while (!writes_.empty()) {
      CallTicket& next = writes_.front();
      if (next.deadline.Passed(now)) {
        Finish(next, DeadlineExceeded("the deadline passed before the write was proposed"));
        writes_.pop_front();
        continue;
      }
      if (!batch.empty() && bytes + next.bytes.size() > kMaxEntryBytes) break;
      bytes += next.bytes.size();
      batch.push_back(std::move(next));
      writes_.pop_front();
    }
    if (batch.empty()) return;
    if (Status s = host_.ProposeCalls(batch); !s.ok()) {
      for (const CallTicket& ticket : batch) Finish(ticket, s);
    }
  }
}

// The results of reads may be large, and whoever asks for many of them has to take them first.
bool Calls::PutOff(CallTicket& ticket) {
  if (ticket.sink || host_.MayReply(ticket.from)) return false;
  put_off_[ticket.from].push_back(std::move(ticket));
  return true;
}

void Calls::Resume(const NodeName& peer) {
  auto it = put_off_.find(peer);
  if (it == put_off_.end()) return;
  // Those that are put off again come behind the others.
  std::deque<CallTicket> tickets = std::move(it->second);
  put_off_.erase(it);
  while (!tickets.empty() && host_.MayReply(peer)) {
    CallTicket ticket = std::move(tickets.front());
    tickets.pop_front();
    v1::Call call;
    if (!call.ParseFromString(ticket.bytes)) continue;  // it was parsed when it came
    if (ticket.deadline.Passed(host_.Now())) {
      Finish(ticket, ReadTooLate());
    } else {
      HandleRead(std::move(ticket), std::move(call));
    }
  }
  if (tickets.empty()) return;
  auto& again = put_off_[peer];
  for (CallTicket& ticket : again) tickets.push_back(std::move(ticket));
  again = std::move(tickets);
}

void Calls::Forget(const NodeName& peer) {
  const auto it = put_off_.find(peer);
  if (it == put_off_.end()) return;
  const std::deque<CallTicket> tickets = std::move(it->second);
  put_off_.erase(it);
  for (const CallTicket& ticket : tickets)
    Finish(ticket, Status(Code::kCancelled, Reason::kNone, "whoever asked is gone"));
}

void Calls::HandleRead(CallTicket ticket, v1::Call call) {
  if (PutOff(ticket)) return;
  if (call.mode() == v1::MODE_RW) {
    if (!host_.IsLeader()) return Finish(ticket, host_.NotLeader());
    const Deadline deadline = ticket.deadline;
    auto shared =
        std::make_shared<std::pair<CallTicket, v1::Call>>(std::move(ticket), std::move(call));
    host_.ReadBarrier(deadline, [this, shared](Status status) {
      if (!status.ok()) return Finish(shared->first, status);
      Read(std::move(shared->first), shared->second);
    });
    return;
  }
  if (call.max_staleness_millis() != 0 &&
      host_.Staleness() > Duration(std::chrono::milliseconds(call.max_staleness_millis()))) {
    return Finish(ticket,
                  Unavailable(Reason::kNone,
                              "this replica is further behind its leader than the call allows"));
  }
  Read(std::move(ticket), call);
}

void Calls::Read(CallTicket ticket, const v1::Call& call) {
  if (PutOff(ticket)) return;
  const SteadyTime now = host_.Now();
  if (ticket.deadline.Passed(now)) return Finish(ticket, ReadTooLate());
  const bool next_page = call.function() == "scan";
  v1::ScanArgs scan;
  if (next_page && !scan.ParseFromString(call.args())) {
    return Finish(ticket, InvalidArgument("the arguments of 'scan' cannot be parsed"));
  }
  if (Status s = CheckLevel(call); !s.ok()) return Finish(ticket, s);
  if (Status s = host_.State().CheckRead(ticket.value, Epoch(call.epoch())); !s.ok()) {
    if (next_page && !scan.cursor().empty()) {
      s = Status(Code::kAborted, Reason::kScanRestarted,
                 "the bucket moved: the scan of it starts again", s.hint());
    }
    return Finish(ticket, s);
  }
  if (next_page) {
    const std::uint8_t level =
        call.has_level() ? static_cast<std::uint8_t>(call.level()) : host_.State().level();
    auto page = scans_.Page(ticket.value, level, scan, host_.State(), host_.Store(), now);
    return page.ok() ? Finish(ticket, OkStatus(), page->SerializeAsString())
                     : Finish(ticket, page.status());
  }
  v1::GetArgs args;
  if (!args.ParseFromString(call.args())) {
    return Finish(ticket, InvalidArgument("the arguments of 'get' cannot be parsed"));
  }
  auto result = host_.State().Get(ticket.value, args);
  result.ok() ? Finish(ticket, OkStatus(), result->SerializeAsString())
              : Finish(ticket, result.status());
}

void Calls::OnOutcome(CallTicket ticket, bucket::CallOutcome outcome) {
  // Ordered after the SENDING of its bucket: refused on every replica alike, so it can wait and be
  // proposed again.
  if (outcome.status.reason() == Reason::kTransferIsInProgress && host_.IsLeader() && Hold(ticket))
    return;
  Finish(ticket, outcome.status, std::move(outcome.result));
}

void Calls::OnLost(CallTicket ticket, const Status& status) { Finish(ticket, status); }

void Calls::OnRow(std::uint32_t bucket, const bucket::Row* row) {
  if (row == nullptr || !bucket::IsReadable(row->status)) scans_.OnBucketGone(bucket);
}

void Calls::OnRebase() { scans_.OnRebase(); }

void Calls::EndHold(std::uint32_t bucket) {
  auto it = held_.find(bucket);
  if (it == held_.end()) return;
  auto tickets = std::move(it->second);
  held_.erase(it);
  for (CallTicket& ticket : tickets) {
    held_bytes_ -= ticket.bytes.size();
    v1::Call call;
    if (!call.ParseFromString(ticket.bytes)) continue;  // it was parsed when it came
    call.set_epoch(0);  // what the caller knew may be older than the move that was given up
    if (ticket.deadline.Passed(host_.Now())) {
      Finish(ticket, HeldTooLong());
    } else {
      HandleWrite(std::move(ticket), call);
    }
  }
}

void Calls::OnLeadershipLost() {
  std::deque<CallTicket> out = std::exchange(writes_, {});
  for (auto& [bucket, tickets] : std::exchange(held_, {})) {
    for (auto& ticket : tickets) out.push_back(std::move(ticket));
  }
  held_bytes_ = 0;
  for (const auto& ticket : out) Finish(ticket, host_.NotLeader());
}

void Calls::OnTick() {
  const SteadyTime now = host_.Now();
  scans_.Expire(now);
  const auto passed = [now](const CallTicket& t) { return t.deadline.Passed(now); };
  for (auto& [peer, tickets] : put_off_) {
    for (const CallTicket& ticket : tickets) {
      if (passed(ticket)) Finish(ticket, ReadTooLate());
    }
    std::erase_if(tickets, passed);
  }
  std::erase_if(put_off_, [](const auto& waiting) { return waiting.second.empty(); });
  for (auto it = held_.begin(); it != held_.end();) {
    auto& tickets = it->second;
    for (auto t = tickets.begin(); t != tickets.end();) {
      if (!t->deadline.Passed(now)) {
        ++t;
        continue;
      }
      held_bytes_ -= t->bytes.size();
      Finish(*t, HeldTooLong());
      t = tickets.erase(t);
    }
    ++it;
  }
}

void Calls::Finish(const CallTicket& ticket, const Status& status, std::string result) {
  queued_bytes_ -= ticket.bytes.size();
  stats_.call_seconds.Add(host_.Now() - ticket.arrived);
  ++stats_.calls[{IsReadFunction(ticket.function) ? "read" : "write", ticket.function,
                  status.code()}];
  host_.Reply(ticket, status, std::move(result));
}

}  // namespace etalon::storage
