#include "storage/node/map_runs.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "placement/modulus.h"
#include "proto/wire.h"

namespace etalon::storage {

namespace {

// Not executed, and may succeed where the bucket is by now.
bool IsRoutingRefusal(const Status& status) {
  const Reason reason = status.reason();
  // The modulus has doubled since the call was admitted.
  const bool risen = reason == Reason::kBucketOutOfRange && status.code() == Code::kAborted;
  return risen || reason == Reason::kWrongBucket || reason == Reason::kTransferIsInProgress ||
         reason == Reason::kStaleEpoch;
}

struct Run {
  v1::MapRunReply reply;
  std::size_t left = 1;  // calls under way, and one until all are admitted
  std::uint64_t bytes = 0;
  bool droppable = false;  // the results are of reads: one that is dropped can be got again
  UniqueFunction<void(v1::MapRunReply)> done;

  bool Full() const { return bytes > kMaxMapReplyBytes; }
  void Ended() {
    if (--left == 0) done(std::move(reply));
  }
  void Take(std::uint32_t bucket, const Status& status, std::string result) {
    if (droppable && Full()) {
      reply.set_more(true);
      return;
    }
    v1::BucketResult& r = IsRoutingRefusal(status) ? *reply.add_rest() : *reply.add_results();
    r.set_bucket(bucket);
    if (!status.ok()) *r.mutable_status() = ToProto(status);
    r.set_result(std::move(result));
    bytes += r.ByteSizeLong();
  }
};

Status Check(const v1::MapRun& request, std::uint8_t level, std::uint32_t bucket_count) {
  if (request.buckets_size() > kMaxMapBuckets) {
    return InvalidArgument("a map run names at most " + std::to_string(kMaxMapBuckets) + " buckets",
                           Reason::kTooLarge);
  }
  if (IsWriteFunction(request.function()) && !request.write()) {
    return InvalidArgument(request.function() + " changes records: the run must say `write`");
  }
  ETALON_RETURN_IF_ERROR(placement::CheckLevel(bucket_count, level));
  for (const auto& b : request.buckets()) {
    ETALON_RETURN_IF_ERROR(placement::CheckBucket({level, b.bucket()}, bucket_count));
  }
  return OkStatus();
}

}  // namespace

void RunMap(Calls& calls, const v1::MapRun& request, std::uint8_t level, std::uint32_t bucket_count,
            UniqueFunction<void(v1::MapRunReply)> done) {
  auto run = std::make_shared<Run>();
  run->done = std::move(done);
  run->droppable = !IsWriteFunction(request.function());
  run->reply.set_id(request.id());
  const auto named = static_cast<std::uint8_t>(std::min<std::uint32_t>(request.level(), 255));
  if (Status s = Check(request, named, bucket_count); !s.ok()) {
    *run->reply.mutable_status() = ToProto(s);
    return run->Ended();
  }
  const std::uint8_t at = std::max(named, level);
  run->reply.set_level(at);
  std::map<std::uint32_t, std::uint64_t> parts;  // each once, however often it is named
  for (const auto& b : request.buckets()) {
    for (std::uint32_t part : placement::ExpandBucket({named, b.bucket()}, at, bucket_count)) {
      parts.emplace(part, b.epoch());
    }
  }
  std::size_t admitted = 0;
  for (const auto& [part, epoch] : parts) {
    if (admitted++ == kMaxMapParts || run->Full()) {
      run->reply.set_more(true);
      break;
    }
    v1::Call call;
    call.set_routing_value(part);
    call.set_level(at);
    call.set_epoch(epoch);
    call.set_mode(v1::MODE_RW);
    call.set_function(request.function());
    call.set_args(request.args());
    call.set_timeout_millis(request.timeout_millis());
    if (request.client() != 0) {
      call.mutable_request()->set_client(request.client());
      call.mutable_request()->set_sequence(request.sequence());
    }
    ++run->left;
    calls.Handle("", call.SerializeAsString(),
                 [run, bucket = part](const Status& status, std::string result) {
                   run->Take(bucket, status, std::move(result));
                   run->Ended();
                 });
  }
  run->Ended();
}

}  // namespace etalon::storage
