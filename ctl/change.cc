#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <sstream>

#include "ctl/commands.h"

namespace etalon::ctl {

namespace {

// The leader that has the bucket, with the shard's level and name. Of two that say so (after a loss
// of disks) the one that is not `but`.
struct Home {
  const Replica* leader;
  std::uint32_t level;
};

Result<Home> Find(Target& target, std::uint32_t bucket, const std::string& but = "") {
  target.Observe();
  std::optional<Home> other;
  for (const std::string& shard : target.Shards()) {
    auto leader = target.Leader(shard);
    if (!leader.ok()) continue;
    v1::BucketsInfoRequest request;
    request.set_bucket(bucket);
    request.set_level((*leader)->info->level());
    auto answer = target.storage(**leader).BucketsInfo(request, target.timeout());
    if (!answer.ok()) continue;
    for (const auto& b : answer->buckets()) {
      if (b.has_row() && b.row().status() != v1::BUCKET_RECEIVING &&
          b.row().status() != v1::BUCKET_GARBAGE) {
        const Home home{*leader, answer->level()};
        if (shard != but) return home;
        other = home;
      }
    }
  }
  if (other) return *other;
  return NotFound("no shard that answers has bucket " + std::to_string(bucket),
                  Reason::kNoRouteToBucket);
}

}  // namespace

Status Scale(Target& target, std::uint32_t shard_num) {
  if (shard_num < 1 || shard_num > 1024)
    return InvalidArgument("the number of shards is 1 to 1024");
  std::string path = target.data_dir() + "/collection.yaml";
  if (std::ifstream status(target.data_dir() + "/status.json"); status) {
    const auto json = nlohmann::json::parse(status, nullptr, false);
    if (json.is_object()) path = json.value("manifest", path);
  }
  std::ifstream in(path);
  if (!in)
    return NotFound("the manifest " + path +
                    " cannot be read; edit shardNum where the operator reads it");
  std::stringstream text;
  text << in.rdbuf();
  // The operator never writes the manifest, and neither does this but for the one number.
  static const std::regex kShardNum(R"((^|\n|\{|,)(\s*shardNum:\s*)\d+)");
  const std::string before = text.str();
  if (!std::regex_search(before, kShardNum))
    return FailedPrecondition(Reason::kInvalidCfg, path + " has no line 'shardNum: N'");
  const std::string after =
      std::regex_replace(before, kShardNum, "$01$02" + std::to_string(shard_num),
                         std::regex_constants::format_first_only);
  std::ofstream(path + ".new") << after;
  std::error_code error;
  std::filesystem::rename(path + ".new", path, error);
  if (error) return Internal(path + " cannot be replaced: " + error.message());
  std::printf("%s says shardNum: %u now; 'etalonctl status' shows how far the operator is\n",
              path.c_str(), shard_num);
  return OkStatus();
}

Status PinBucket(Target& target, std::uint32_t bucket, bool unpin) {
  ETALON_ASSIGN_OR_RETURN(const Home home, Find(target, bucket));
  v1::PinRequest request;
  request.add_buckets(bucket);
  request.set_level(home.level);
  request.set_unpin(unpin);
  auto& client = target.storage(*home.leader);
  ETALON_RETURN_IF_ERROR(unpin ? client.Unpin(request, target.timeout())
                               : client.Pin(request, target.timeout()));
  std::printf("bucket %u is %s on %s\n", bucket, unpin ? "not pinned any more" : "pinned",
              home.leader->shard.c_str());
  return OkStatus();
}

Status MoveBucket(Target& target, std::uint32_t bucket, const std::string& to) {
  ETALON_ASSIGN_OR_RETURN(const Home home, Find(target, bucket, to));
  ETALON_ASSIGN_OR_RETURN(const std::uint64_t uid, target.Uid(to));
  v1::SendRequest request;
  request.set_bucket(bucket);
  request.set_level(home.level);
  request.set_target(uid);
  ETALON_ASSIGN_OR_RETURN(const auto answer,
                          target.storage(*home.leader).Send(request, target.timeout()));
  std::printf("bucket %u is on its way from %s to %s (transfer %s)\n", bucket,
              home.leader->shard.c_str(), to.c_str(),
              ToString(TransferId{ShardUid(answer.id().source()), Term(answer.id().term()),
                                  LogIndex(answer.id().index())})
                  .c_str());
  return OkStatus();
}

Status SplitShard(Target& target, const std::string& source, const std::string& to,
                  const std::string& task) {
  target.Observe();
  ETALON_ASSIGN_OR_RETURN(const Replica* leader, target.Leader(source));
  ETALON_ASSIGN_OR_RETURN(const std::uint64_t uid, target.Uid(to));
  v1::SplitRequest request;
  request.set_task(task);
  request.set_target(uid);
  ETALON_ASSIGN_OR_RETURN(const auto answer,
                          target.storage(*leader).Split(request, target.timeout()));
  std::printf("split task %s: %s\n", answer.task().c_str(),
              v1::SplitState_Name(answer.state()).substr(6).c_str());
  return OkStatus();
}

Status Switchover(Target& target, const std::string& shard, const std::string& to) {
  target.Observe();
  ETALON_ASSIGN_OR_RETURN(const Replica* leader, target.Leader(shard));
  v1::TransferLeaderRequest request;
  request.set_to(to);
  const std::string before = leader->name;
  ETALON_RETURN_IF_ERROR(target.storage(*leader).TransferLeader(request, target.timeout()));
  // The new leader serves once it has applied an entry of its term.
  auto now = target.Leader(shard);
  const auto end = std::chrono::steady_clock::now() + target.timeout();
  do {
    target.Observe();
    now = target.Leader(shard);
  } while (!now.ok() && std::chrono::steady_clock::now() < end);
  std::printf("the leader of %s was %s and is %s\n", shard.c_str(), before.c_str(),
              now.ok() ? (*now)->name.c_str() : "not known yet");
  return OkStatus();
}

Status RecoverReplica(Target& target, const std::string& name, bool confirmed) {
  target.Observe();
  ETALON_ASSIGN_OR_RETURN(const Replica* replica, target.Find(name));
  if (!replica->info) return Unavailable(Reason::kUnreachableReplicaset, name + " does not answer");
  if (auto leader = target.Leader(replica->shard); leader.ok()) {
    return FailedPrecondition(Reason::kNone, replica->shard + " has a leader, " + (*leader)->name +
                                                 ": there is nothing to recover");
  }
  if (!confirmed) {
    return FailedPrecondition(Reason::kNone,
                              "this makes " + name + " the only member of " + replica->shard +
                                  ": what only the lost majority had is given up. Repeat with "
                                  "--yes-lose-data if its disks are really gone");
  }
  std::uint64_t term = 0;
  for (const Replica& r : target.replicas()) {
    if (r.info) term = std::max(term, r.info->term());
  }
  v1::RecoverRequest request;
  request.set_shard(replica->info->shard());
  request.set_member(replica->info->member());
  request.set_term_above(term + 1);
  ETALON_RETURN_IF_ERROR(target.storage(*replica).Recover(request, std::chrono::seconds(60)));
  std::printf("%s goes on alone as %s, above term %llu; the operator adds replicas again\n",
              replica->shard.c_str(), name.c_str(), static_cast<unsigned long long>(term + 1));
  return OkStatus();
}

Status ReleaseBucket(Target& target, std::uint32_t bucket, const std::string& shard, bool serve) {
  target.Observe();
  ETALON_ASSIGN_OR_RETURN(const Replica* leader, target.Leader(shard));
  v1::ReleaseQuarantineRequest request;
  request.set_bucket(bucket);
  request.set_level(leader->info->level());
  request.set_to_active(serve);
  ETALON_RETURN_IF_ERROR(target.storage(*leader).ReleaseQuarantine(request, target.timeout()));
  std::printf("bucket %u of %s is %s\n", bucket, shard.c_str(),
              serve ? "served again" : "being deleted");
  return OkStatus();
}

}  // namespace etalon::ctl
