#include "bench/show/client.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "env/posix/os.h"

namespace etalon::show {

namespace {

using SteadyClock = std::chrono::steady_clock;

bool MaySendAgain(const Status& status) {
  switch (status.code()) {
    case Code::kUnavailable:
    case Code::kAborted:
    case Code::kResourceExhausted:
      return true;
    default:
      return false;
  }
}

}  // namespace

struct Client::Call {
  v1::ClientCall message;
  Done done;
  SteadyClock::time_point deadline;
  Duration wait = std::chrono::milliseconds(5);
};

Client::Client(const std::vector<std::string>& routers, Duration deadline)
    : deadline_(deadline), id_(Random(OsSeed()).NextId()), random_(OsSeed()) {
  for (const auto& address : routers)
    pipes_.push_back(std::make_unique<rpc::RouterPipe>(address, OsSeed()));
  resender_ = std::make_unique<std::thread>([this] { ResendLoop(); });
}

Client::~Client() {
  for (auto& pipe : pipes_) (void)pipe->Stop(std::chrono::seconds(5));
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  resender_->join();
}

void Client::Get(const std::string& source, const std::string& space, const std::string& key,
                 v1::Mode mode, Done done) {
  v1::GetArgs args;
  args.set_space(space);
  args.set_key(key);
  v1::ClientCall call;
  call.mutable_target()->set_string_key(source);
  call.set_mode(mode);
  call.set_function("get");
  args.SerializeToString(call.mutable_args());
  Start(std::move(call), std::move(done));
}

void Client::Txn(const std::string& source, const v1::TxnArgs& txn, Done done) {
  v1::ClientCall call;
  call.mutable_target()->set_string_key(source);
  call.set_mode(v1::MODE_RW);
  call.set_function("txn");
  txn.SerializeToString(call.mutable_args());
  call.mutable_request()->set_client(id_);
  call.mutable_request()->set_sequence(++sequence_);
  Start(std::move(call), std::move(done));
}

Result<v1::GetResult> Client::GetNow(const std::string& source, const std::string& space,
                                     const std::string& key) {
  std::promise<std::pair<Status, std::string>> answer;
  Get(source, space, key, v1::MODE_RW, [&](const Status& s, const std::string& r) {
    answer.set_value({s, r});
  });
  auto [status, bytes] = answer.get_future().get();
  if (!status.ok()) return status;
  v1::GetResult result;
  if (!result.ParseFromString(bytes)) return Internal("the result of a get cannot be parsed");
  return result;
}

void Client::Start(v1::ClientCall message, Done done) {
  auto call = std::make_shared<Call>();
  call->message = std::move(message);
  call->done = std::move(done);
  call->deadline = SteadyClock::now() + deadline_;
  Send(call);
}

void Client::Send(const std::shared_ptr<Call>& call) {
  const auto left = call->deadline - SteadyClock::now();
  if (left <= Duration::zero())
    return call->done(DeadlineExceeded("the deadline passed while the call was sent again"), "");
  // A router that is being rolled refuses at once; the next one takes the call.
  const std::uint64_t first = turn_++;
  Status refused;
  for (std::size_t i = 0; i < pipes_.size(); ++i) {
    refused = pipes_[(first + i) % pipes_.size()]->Call(
        call->message, left, [this, call](const Status& status, const std::string& result) {
          Finish(call, status, result);
        });
    if (refused.ok()) return;
  }
  Finish(call, refused, "");
}

void Client::Finish(const std::shared_ptr<Call>& call, const Status& status,
                    const std::string& result) {
  std::unique_lock lock(mutex_);
  if (status.ok() || !MaySendAgain(status) || stopping_) {
    lock.unlock();
    return call->done(status, result);
  }
  std::string why(CodeName(status.code()));
  if (status.reason() != Reason::kNone) why.append("/").append(ReasonName(status.reason()));
  ++resent_[why];
  const Duration wait = random_.Between(call->wait / 2, call->wait);
  call->wait = std::min<Duration>(call->wait * 2, std::chrono::milliseconds(500));
  delayed_.push_back({SteadyClock::now() + wait, call});
  wake_.notify_all();
}

std::string Client::Resent() const {
  std::lock_guard lock(mutex_);
  std::uint64_t all = 0;
  std::string reasons;
  for (const auto& [why, times] : resent_) {
    all += times;
    reasons.append(reasons.empty() ? "" : ", ")
        .append(why)
        .append(" ")
        .append(std::to_string(times));
  }
  return std::to_string(all) + (all == 0 ? "" : " (" + reasons + ")");
}

void Client::ResendLoop() {
  std::unique_lock lock(mutex_);
  while (!stopping_ || !delayed_.empty()) {
    if (delayed_.empty()) {
      wake_.wait(lock);
      continue;
    }
    auto next = std::min_element(delayed_.begin(), delayed_.end(),
                                 [](const auto& a, const auto& b) { return a.at < b.at; });
    if (!stopping_ && next->at > SteadyClock::now()) {
      wake_.wait_until(lock, next->at);
      continue;
    }
    const std::shared_ptr<Call> call = next->call;
    delayed_.erase(next);
    lock.unlock();
    Send(call);
    lock.lock();
  }
}

}  // namespace etalon::show
