#include "rpc/testing/process.h"

#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <future>
#include <utility>

#include "common/check.h"
#include "rpc/channel.h"

namespace etalon::rpc::testing {

bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

Process::Process(NodeName name, std::string method, const Limits& limits)
    : core_(clock_), endpoint_(std::make_shared<Endpoint>(core_, log_, limits)) {
  net_ = std::make_unique<GrpcTransport>(
      endpoint_, clock_, Random(1),
      GrpcTransport::Options{.self = std::move(name), .method = std::move(method)});
  endpoint_->SetReceiver([this](const NodeName& from, Lane lane, std::string bytes) {
    Message message{from, lane, std::move(bytes)};
    if (on_message) on_message(message);
    std::lock_guard lock(mutex_);
    received_.push_back(std::move(message));
    changed_.notify_all();
  });
  loop_ = std::thread([this] { core_.Run(); });
}

Process::~Process() {
  net_->Stop(kPatience);
  endpoint_->BeginClose();
  core_.Stop();
  loop_.join();
  endpoint_->Close();
}

void Process::OnCore(std::function<void()> task) {
  std::promise<void> ran;
  core_.Post([&] {
    task();
    ran.set_value();
  });
  ran.get_future().wait();
}

SendResult Process::Send(const NodeName& to, Lane lane, std::string bytes) {
  SendResult result = SendResult::kUnknown;
  OnCore([&] { result = net_->Send(to, lane, std::move(bytes)); });
  return result;
}

void Process::SetAddress(const NodeName& node, const std::string& address) {
  OnCore([&] { net_->SetAddress(node, address); });
}

std::vector<Process::Message> Process::Wait(std::size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kPatience, [&] { return received_.size() >= count; });
  return received_;
}

RawClient::RawClient(const std::string& address, const std::string& method,
                     const std::vector<std::pair<std::string, std::string>>& metadata)
    : channel_(MakeChannel(address)) {
  for (const auto& [name, value] : metadata) context_.AddMetadata(name, value);
  context_.set_deadline(std::chrono::system_clock::now() + kPatience);
  grpc::GenericStub(channel_).PrepareBidiStreamingCall(&context_, method, {}, this);
  AddHold();
  StartCall();
}

RawClient::~RawClient() {
  context_.TryCancel();
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(held_, false)) RemoveHold();
  }
  ETALON_CHECK(WaitUntil([this] { return done_; }), "a cancelled stream ends");
}

bool RawClient::Write(const std::string& bytes, bool wait_for_it) {
  if (!WaitUntil([this] { return !writing_; })) return false;
  {
    std::lock_guard lock(mutex_);
    if (broken_ || done_) return false;
    writing_ = true;
    outgoing_ = ToBuffer(bytes);
    StartWrite(&outgoing_);
  }
  if (!wait_for_it) return true;
  WaitUntil([this] { return !writing_; });
  std::lock_guard lock(mutex_);
  return !broken_;
}

void RawClient::WritesDone() {
  WaitUntil([this] { return !writing_; });
  StartWritesDone();
}

bool RawClient::Read(std::string* bytes) {
  {
    std::lock_guard lock(mutex_);
    if (ended_) return false;
    reading_ = true;
    StartRead(&incoming_);
  }
  if (!WaitUntil([this] { return !reading_; })) return false;
  std::lock_guard lock(mutex_);
  if (ended_) return false;
  *bytes = FromBuffer(incoming_);
  return true;
}

grpc::Status RawClient::Finish() {
  for (std::string ignored; Read(&ignored);) {
  }
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(held_, false)) RemoveHold();
  }
  WaitUntil([this] { return done_; });
  std::lock_guard lock(mutex_);
  return status_;
}

void RawClient::OnWriteDone(bool ok) {
  std::lock_guard lock(mutex_);
  writing_ = false;
  broken_ = broken_ || !ok;
  changed_.notify_all();
}

void RawClient::OnReadDone(bool ok) {
  std::lock_guard lock(mutex_);
  reading_ = false;
  ended_ = ended_ || !ok;
  changed_.notify_all();
}

void RawClient::OnDone(const grpc::Status& status) {
  std::lock_guard lock(mutex_);
  done_ = true;
  status_ = status;
  changed_.notify_all();
}

bool RawClient::WaitUntil(const std::function<bool()>& condition) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, condition);
}

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string FromBuffer(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string out;
  if (!buffer.Dump(&slices).ok()) return out;
  for (const grpc::Slice& slice : slices)
    out.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return out;
}

grpc::Status RawUnary(const std::string& address, const std::string& method,
                      const std::string& request, std::string* response) {
  RawClient client(address, method);
  client.Write(request);
  client.WritesDone();
  client.Read(response);
  return client.Finish();
}

}  // namespace etalon::rpc::testing
