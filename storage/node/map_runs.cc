#include "storage/node/map_runs.h"

#include <memory>
#include <utility>

#include "proto/wire.h"

namespace etalon::storage {

namespace {

constexpr int kMaxBuckets = 100'000;

// Not executed, and may succeed where the bucket is by now.
bool IsRoutingRefusal(Reason reason) {
  return reason == Reason::kWrongBucket || reason == Reason::kTransferIsInProgress ||
         reason == Reason::kStaleEpoch;
}

struct Run {
  v1::MapRunReply reply;
  int left = 0;
  UniqueFunction<void(v1::MapRunReply)> done;
};

}  // namespace

void RunMap(Calls& calls, const v1::MapRun& request, std::uint8_t level, std::uint64_t modulus,
            UniqueFunction<void(v1::MapRunReply)> done) {
  auto run = std::make_shared<Run>();
  run->reply.set_id(request.id());
  const auto refuse = [&](const Status& status) {
    *run->reply.mutable_status() = ToProto(status);
    done(std::move(run->reply));
  };
  if (request.buckets_size() > kMaxBuckets) {
    return refuse(InvalidArgument(
        "a map run names at most " + std::to_string(kMaxBuckets) + " buckets", Reason::kTooLarge));
  }
  if (request.level() != level) {
    // Buckets of another level are not these buckets: the caller names them anew.
    for (const auto& b : request.buckets()) run->reply.add_rest(b.bucket());
    return done(std::move(run->reply));
  }
  for (const auto& b : request.buckets()) {
    if (b.bucket() >= modulus) {
      return refuse(Status(Code::kOutOfRange, Reason::kBucketOutOfRange,
                           "bucket " + std::to_string(b.bucket()) + " is out of range: there are " +
                               std::to_string(modulus)));
    }
  }
  run->left = request.buckets_size();
  run->done = std::move(done);
  if (run->left == 0) return run->done(std::move(run->reply));
  for (const auto& b : request.buckets()) {
    v1::Call call;
    call.set_routing_value(b.bucket());
    call.set_epoch(b.epoch());
    call.set_mode(v1::MODE_RW);
    call.set_function(request.function());
    call.set_args(request.args());
    call.set_timeout_millis(request.timeout_millis());
    if (request.write() && request.client() != 0) {
      call.mutable_request()->set_client(request.client());
      call.mutable_request()->set_sequence(request.sequence());
    }
    calls.Handle("", call.SerializeAsString(),
                 [run, bucket = b.bucket()](Status status, std::string result) {
                   if (IsRoutingRefusal(status.reason())) {
                     run->reply.add_rest(bucket);
                   } else {
                     v1::BucketResult& r = *run->reply.add_results();
                     r.set_bucket(bucket);
                     if (!status.ok()) *r.mutable_status() = ToProto(status);
                     r.set_result(std::move(result));
                   }
                   if (--run->left == 0) run->done(std::move(run->reply));
                 });
  }
}

}  // namespace etalon::storage
