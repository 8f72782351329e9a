#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "common/random.h"
#include "ctl/commands.h"
#include "env/posix/os.h"
#include "rpc/client/router_pipe.h"

namespace etalon::ctl {

namespace {

v1::RequestId NewRequestId() {
  static const std::uint64_t client = Random(OsSeed()).NextId();
  static std::atomic<std::uint64_t> sequence{0};
  v1::RequestId id;
  id.set_client(client);
  id.set_sequence(++sequence);
  return id;
}

v1::ClientCall MakeCall(const v1::Target& key, v1::Mode mode, const std::string& function,
                        std::string args) {
  v1::ClientCall call;
  *call.mutable_target() = key;
  call.set_mode(mode);
  call.set_function(function);
  call.set_args(std::move(args));
  if (function != "get" && function != "scan") *call.mutable_request() = NewRequestId();
  return call;
}

Result<std::string> Run(Target& target, const v1::ClientCall& call) {
  return target.router().Call(call, std::max<Duration>(target.timeout(), std::chrono::seconds(10)));
}

}  // namespace

Result<v1::Target> ParseKey(Target& target, const std::string& text) {
  v1::Target key;
  const auto number = [](std::string_view digits, auto* value) {
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *value);
    return error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
  };
  if (text.rfind("bucket:", 0) == 0) {
    std::uint64_t bucket = 0;
    if (!number(std::string_view(text).substr(7), &bucket))
      return InvalidArgument("'" + text + "' names no bucket: use bucket:17");
    key.set_bucket(bucket);
    return key;
  }
  key.set_string_key(text);
  auto as_text = target.router().BucketId(key, target.timeout());
  if (as_text.ok()) return key;
  if (as_text.status().code() != Code::kInvalidArgument) return as_text.status();
  std::int64_t value = 0;
  if (!number(text, &value))
    return InvalidArgument("this collection is sharded by a number, '" + text + "' is none");
  key.set_int_key(value);
  return key;
}

Status Get(Target& target, const v1::Target& key, const std::string& space,
           const std::string& record, v1::Mode mode) {
  v1::GetArgs args;
  args.set_space(space);
  args.set_key(record);
  ETALON_ASSIGN_OR_RETURN(const std::string bytes,
                          Run(target, MakeCall(key, mode, "get", args.SerializeAsString())));
  v1::GetResult result;
  if (!result.ParseFromString(bytes)) return Internal("the router's answer cannot be parsed");
  if (!result.found())
    return NotFound("there is no record '" + record + "' in space " + space, Reason::kKeyNotFound);
  std::fwrite(result.value().data(), 1, result.value().size(), stdout);
  std::fputc('\n', stdout);
  return OkStatus();
}

Status Put(Target& target, const v1::Target& key, const std::string& function,
           const std::string& space, const std::string& record, const std::string& value) {
  v1::PutArgs args;
  args.set_space(space);
  args.set_key(record);
  args.set_value(value);
  return Run(target, MakeCall(key, v1::MODE_RW, function, args.SerializeAsString())).status();
}

Status Delete(Target& target, const v1::Target& key, const std::string& space,
              const std::string& record) {
  v1::DeleteArgs args;
  args.set_space(space);
  args.set_key(record);
  return Run(target, MakeCall(key, v1::MODE_RW, "delete", args.SerializeAsString())).status();
}

Status Scan(Target& target, Format format, const v1::Target& key, const std::string& space,
            std::uint32_t limit) {
  v1::ScanArgs args;
  args.set_space(space);
  args.set_whole_bucket(key.target_case() == v1::Target::kBucket);
  Table table({"SPACE", "KEY", "VALUE"});
  std::uint32_t seen = 0;
  int restarts = 0;
  std::vector<std::vector<std::string>> rows;
  while (seen < limit) {
    args.set_limit(std::min<std::uint32_t>(limit - seen, 1000));
    auto bytes = Run(target, MakeCall(key, v1::MODE_RW, "scan", args.SerializeAsString()));
    if (!bytes.ok() && bytes.status().reason() == Reason::kScanRestarted && ++restarts <= 5) {
      args.clear_cursor();
      rows.clear();
      seen = 0;
      continue;
    }
    ETALON_RETURN_IF_ERROR(bytes.status());
    v1::ScanResult page;
    if (!page.ParseFromString(*bytes)) return Internal("the router's answer cannot be parsed");
    for (const auto& record : page.records())
      rows.push_back({record.space(), record.key(), record.value()});
    seen += static_cast<std::uint32_t>(page.records_size());
    if (page.cursor().empty()) break;
    args.set_cursor(page.cursor());
  }
  for (auto& row : rows) {
    if (format == Format::kTable && row[2].size() > 100) row[2] = row[2].substr(0, 100) + "...";
    table.Row(std::move(row));
  }
  table.Print(format);
  return OkStatus();
}

Status Call(Target& target, const v1::Target& key, const std::string& function,
            const std::string& args, v1::Mode mode) {
  const auto parse = [&](google::protobuf::Message* message) -> Result<std::string> {
    const auto status =
        google::protobuf::util::JsonStringToMessage(args.empty() ? "{}" : args, message);
    if (!status.ok())
      return InvalidArgument("the arguments of '" + function +
                             "' are not its JSON: " + std::string(status.message()));
    return message->SerializeAsString();
  };
  v1::GetArgs get;
  v1::PutArgs put;
  v1::DeleteArgs del;
  v1::ScanArgs scan;
  v1::TxnArgs txn;
  google::protobuf::Message* message =
      function == "get"      ? static_cast<google::protobuf::Message*>(&get)
      : function == "delete" ? static_cast<google::protobuf::Message*>(&del)
      : function == "scan"   ? static_cast<google::protobuf::Message*>(&scan)
      : function == "txn"    ? static_cast<google::protobuf::Message*>(&txn)
                             : static_cast<google::protobuf::Message*>(&put);
  ETALON_ASSIGN_OR_RETURN(std::string bytes, parse(message));
  ETALON_ASSIGN_OR_RETURN(const std::string answer,
                          Run(target, MakeCall(key, mode, function, std::move(bytes))));
  v1::GetResult got;
  v1::ScanResult page;
  google::protobuf::Message* result =
      function == "get" ? static_cast<google::protobuf::Message*>(&got) : &page;
  std::string json = "{}";
  if ((function == "get" || function == "scan") && result->ParseFromString(answer)) {
    (void)google::protobuf::util::MessageToJsonString(*result, &json);
  }
  std::printf("%s\n", json.c_str());
  return OkStatus();
}

Status Import(Target& target, const std::string& file) {
  std::ifstream in(file);
  if (!in) return NotFound("the file " + file + " cannot be read");
  in.seekg(0, std::ios::end);
  const auto size = static_cast<double>(in.tellg());
  in.seekg(0);
  if (target.router_addresses().empty())
    return Unavailable(Reason::kNone, "the collection has no router");
  // Whether keys are numbers is asked once, of the first line's kind.
  constexpr std::size_t kInFlight = 256;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t in_flight = 0;
  std::uint64_t done = 0;
  Status failure;
  rpc::RouterPipe pipe(target.router_addresses().front(), OsSeed());
  const bool terminal = isatty(STDERR_FILENO) != 0;
  std::string line;
  std::uint64_t number = 0;
  double read = 0;
  while (std::getline(in, line)) {
    ++number;
    read += static_cast<double>(line.size()) + 1;
    if (line.empty()) continue;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    const std::string where = file + ":" + std::to_string(number) + ": ";
    if (!json.is_object() || !json.contains("shardKey") || !json.contains("space") ||
        !json.contains("key") || !json.contains("value") || !json["space"].is_string() ||
        !json["key"].is_string()) {
      std::lock_guard lock(mutex);
      failure = InvalidArgument(
          where +
          "expected {\"shardKey\": ..., \"space\": \"...\", \"key\": \"...\", \"value\": ...}");
      break;
    }
    v1::Target key;
    if (json["shardKey"].is_number_integer()) {
      key.set_int_key(json["shardKey"].get<std::int64_t>());
    } else if (json["shardKey"].is_string()) {
      key.set_string_key(json["shardKey"].get<std::string>());
    } else {
      std::lock_guard lock(mutex);
      failure = InvalidArgument(where + "shardKey must be text or a whole number");
      break;
    }
    v1::PutArgs args;
    args.set_space(json["space"].get<std::string>());
    args.set_key(json["key"].get<std::string>());
    args.set_value(json["value"].is_string() ? json["value"].get<std::string>()
                                             : json["value"].dump());
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return in_flight < kInFlight; });
      if (!failure.ok()) break;
      ++in_flight;
    }
    const auto finish = [&, where](const Status& status, const std::string&) {
      std::lock_guard lock(mutex);
      --in_flight;
      if (status.ok()) ++done;
      if (!status.ok() && failure.ok()) failure = status.Annotate(where);
      changed.notify_all();
    };
    const Status refused = pipe.Call(MakeCall(key, v1::MODE_RW, "put", args.SerializeAsString()),
                                     std::chrono::seconds(30), finish);
    if (!refused.ok()) finish(refused, "");
    if (terminal && number % 500 == 0) {
      const int full = size > 0 ? static_cast<int>(read / size * 40) : 40;
      std::fprintf(stderr, "\r[%s%s] %llu",
                   std::string(static_cast<std::size_t>(full), '#').c_str(),
                   std::string(static_cast<std::size_t>(40 - full), '.').c_str(),
                   static_cast<unsigned long long>(number));
    }
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return in_flight == 0; });
  if (terminal) std::fprintf(stderr, "\r%60s\r", "");
  std::printf("%llu records are in\n", static_cast<unsigned long long>(done));
  if (!failure.ok())
    return failure.Annotate(
        "the import stopped (it may be repeated: a record put twice is the same record)");
  return OkStatus();
}

}  // namespace etalon::ctl
