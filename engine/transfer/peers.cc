#include "engine/transfer/peers.h"

#include <algorithm>

#include "placement/modulus.h"
#include "proto/wire.h"

namespace etalon::transfer {

bool PeerTerms::Admit(ShardUid peer, Term term) {
  Term& highest = terms_[peer];
  if (term < highest) return false;
  highest = term;
  return true;
}

void AlertBook::Raise(std::string_view code, std::string key, std::string text, Output* out) {
  std::string& standing = raised_[{key, code}];
  if (standing == text) return;
  standing = text;
  out->actions.push_back(Alert{code, std::move(key), true, std::move(text)});
}

void AlertBook::Clear(std::string_view code, const std::string& key, Output* out) {
  const auto it = raised_.find({key, code});
  if (it == raised_.end()) return;
  raised_.erase(it);
  out->actions.push_back(Alert{code, key, false, {}});
}

void AlertBook::ClearAll(const std::string& key, Output* out) {
  auto it = raised_.lower_bound({key, std::string_view()});
  while (it != raised_.end() && it->first.first == key) {
    out->actions.push_back(Alert{it->first.second, key, false, {}});
    it = raised_.erase(it);
  }
}

void AlertBook::Reset(Output* out) {
  for (const auto& [key, text] : raised_) {
    out->actions.push_back(Alert{key.second, key.first, false, {}});
  }
  raised_.clear();
}

void RebaseGate::Want(std::uint8_t level, SteadyTime until) {
  level_ = std::max(level_, level);
  until_ = std::max(until_, until);
}

std::optional<std::uint8_t> RebaseGate::Wanted(std::uint8_t level, SteadyTime now) const {
  if (now >= until_ || level_ <= level) return std::nullopt;
  return level_;
}

Result<v1::Answer> AnswerQuestion(const bucket::StateMachine& state, Term term,
                                  const v1::Question& question) {
  const std::uint32_t bucket_count = state.bucket_count();
  const std::uint32_t level = std::max<std::uint32_t>(question.level(), state.level());
  if (bucket_count == 0) return FailedPrecondition(Reason::kUnformed, "this shard has no topology");
  if (level > 32 || !placement::CheckLevel(bucket_count, static_cast<std::uint8_t>(level)).ok()) {
    return InvalidArgument("the question names a level that no collection can have");
  }
  v1::Answer answer;
  *answer.mutable_id() = question.id();
  if (!question.has_id()) answer.clear_id();
  answer.set_asker_term(question.asker_term());
  answer.set_number(question.number());
  answer.set_shard(state.shard().value());
  answer.set_term(term.value());
  answer.set_applied_index(state.applied_index().value());
  answer.set_level(level);
  answer.set_retired(state.retired());
  const std::uint64_t asked = std::uint64_t{bucket_count} << question.level();
  const std::uint64_t here = state.modulus();
  const std::uint64_t end = std::uint64_t{bucket_count} << level;
  for (const std::uint32_t bucket : question.buckets()) {
    if (bucket >= asked) return InvalidArgument("the question names a bucket out of range");
    for (std::uint64_t n = bucket; n < end; n += asked) {
      v1::BucketAnswer& b = *answer.add_buckets();
      b.set_bucket(static_cast<std::uint32_t>(n));
      // A row of a lower level is the row of each of its halves.
      const auto mine = static_cast<std::uint32_t>(n % here);
      const bucket::Marks marks = state.FindMarks(mine);
      b.mutable_marks()->set_own(marks.own.value());
      b.mutable_marks()->set_left_epoch(marks.left_epoch.value());
      if (marks.left) {
        *b.mutable_marks()->mutable_left() = ToProto(marks.left);
        b.mutable_marks()->set_left_to(marks.left_to.value());
      }
      const bucket::Row* row = state.FindRow(mine);
      if (row == nullptr) continue;
      b.mutable_row()->set_bucket(b.bucket());
      b.mutable_row()->set_status(static_cast<v1::BucketStatus>(row->status));
      b.mutable_row()->set_epoch(row->epoch.value());
      if (!row->transfer) continue;
      *b.mutable_row()->mutable_transfer() = ToProto(row->transfer);
      if (const auto out = state.outgoing().find(row->transfer); out != state.outgoing().end()) {
        b.set_destination(out->second.target.value());
      }
      if (const auto in = state.incoming().find(row->transfer); in != state.incoming().end()) {
        b.set_prepared(in->second.prepared);
      }
    }
  }
  return answer;
}

std::vector<std::uint32_t> Numbers(const std::vector<bucket::BucketEpoch>& set) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(set.size());
  for (const bucket::BucketEpoch& b : set) numbers.push_back(b.bucket);
  return numbers;
}

Result<std::vector<bucket::BucketEpoch>> ParseSet(
    const google::protobuf::RepeatedPtrField<v1::BucketEpoch>& set, std::uint32_t level,
    std::uint32_t bucket_count) {
  if (set.empty()) return InvalidArgument("a transfer of no buckets");
  if (level > 32 || !placement::CheckLevel(bucket_count, static_cast<std::uint8_t>(level)).ok()) {
    return InvalidArgument("a level that no collection can have", Reason::kModulusCap);
  }
  const std::uint64_t modulus = std::uint64_t{bucket_count} << level;
  std::vector<bucket::BucketEpoch> parsed;
  parsed.reserve(static_cast<std::size_t>(set.size()));
  for (const v1::BucketEpoch& b : set) {
    if (b.bucket() >= modulus || (!parsed.empty() && b.bucket() <= parsed.back().bucket)) {
      return InvalidArgument("the buckets of a transfer must be in range, ascending, each once",
                             Reason::kBucketOutOfRange);
    }
    parsed.push_back({b.bucket(), Epoch(b.epoch())});
  }
  return parsed;
}

void FillSet(const std::vector<bucket::BucketEpoch>& set,
             google::protobuf::RepeatedPtrField<v1::BucketEpoch>* out) {
  out->Reserve(static_cast<int>(set.size()));
  for (const bucket::BucketEpoch& b : set) {
    v1::BucketEpoch& p = *out->Add();
    p.set_bucket(b.bucket);
    p.set_epoch(b.epoch.value());
  }
}

bool IsRemoved(const v1::Topology& topology, ShardUid shard) {
  const auto& removed = topology.removed_shards();
  return std::find(removed.begin(), removed.end(), shard.value()) != removed.end();
}

bool IsKnown(const v1::Topology& topology, ShardUid shard) {
  return std::any_of(topology.shards().begin(), topology.shards().end(),
                     [&](const v1::ShardInfo& info) { return info.uid() == shard.value(); });
}

std::string NameOf(const v1::Topology& topology, ShardUid shard) {
  for (const v1::ShardInfo& info : topology.shards()) {
    if (info.uid() == shard.value()) return info.name();
  }
  return ToHex(shard.value());
}

}  // namespace etalon::transfer
