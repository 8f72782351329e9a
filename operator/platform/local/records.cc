#include "operator/platform/local/records.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/random.h"
#include "operator/platform/local/files.h"

namespace etalon::controller {
namespace {

using nlohmann::json;

Result<json> ReadJson(const std::string& path) {
  ETALON_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  json out = json::parse(text, nullptr, false);
  if (!out.is_object()) return DataLoss(path + " is damaged: it is no JSON object");
  return out;
}

std::string_view Name(Ending ending) {
  switch (ending) {
    case Ending::kNone:
      return "";
    case Ending::kRestart:
      return "restart";
    case Ending::kRemove:
      return "remove";
    case Ending::kDiscard:
      return "discard";
  }
  return "";
}

Ending EndingOf(const std::string& name) {
  for (const Ending e : {Ending::kRestart, Ending::kRemove, Ending::kDiscard}) {
    if (Name(e) == name) return e;
  }
  return Ending::kNone;
}

json ToJson(const ProcessRecord& record) {
  json out = {{"name", record.name},
              {"kind", record.kind == ProcessKind::kStorage ? "storage" : "router"},
              {"port", record.port},
              {"pid", record.process.pid},
              {"startTime", record.process.start_time}};
  if (record.kind == ProcessKind::kStorage) {
    out["shard"] = record.shard;
    out["uid"] = ToHex(record.uid.value());
  }
  if (record.ending != Ending::kNone) out["ending"] = Name(record.ending);
  return out;
}

Result<ProcessRecord> RecordOf(const std::string& path, const json& in) {
  ProcessRecord out;
  try {  // nlohmann throws on a value of the wrong type
    out.name = in.at("name");
    out.kind = in.at("kind") == "router" ? ProcessKind::kRouter : ProcessKind::kStorage;
    out.port = in.at("port");
    out.process = {in.at("pid"), in.at("startTime")};
    out.shard = in.value("shard", "");
    out.uid = ShardUid(FromHex(in.value("uid", "")));
    out.ending = EndingOf(in.value("ending", ""));
  } catch (const json::exception& e) {
    return DataLoss(fmt::format("{} is damaged: {}", path, e.what()));
  }
  return out;
}

template <class Message>
Status LoadVersions(const std::string& dir, const std::string& prefix,
                    std::map<std::uint64_t, Message>* out) {
  ETALON_ASSIGN_OR_RETURN(const auto names, ListMiddles(dir, prefix, ".json"));
  for (const std::string& name : names) {
    const std::string path = fmt::format("{}/{}{}.json", dir, prefix, name);
    Message message;
    ETALON_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    ETALON_RETURN_IF_ERROR(FromJson(path, text, &message));
    if (std::to_string(message.version()) != name)
      return DataLoss(path + " holds another version than its name says");
    out->emplace(message.version(), std::move(message));
  }
  return OkStatus();
}

}  // namespace

Result<Records> Records::Open(const std::string& dir, std::uint64_t seed) {
  Records out(dir);
  ETALON_RETURN_IF_ERROR(out.Load(seed));
  return out;
}

Status Records::Load(std::uint64_t seed) {
  for (const char* sub : {"", "/processes", "/storage", "/retired", "/logs"})
    ETALON_RETURN_IF_ERROR(MakeDirs(dir_ + sub));
  const std::string path = dir_ + "/collection.json";
  if (const auto there = ReadJson(path); there.ok()) {
    const auto id = there.value().find("collection");
    if (id != there.value().end() && id->is_string())
      collection_ = CollectionId(FromHex(id->get<std::string>()));
    if (!collection_) return DataLoss(path + " names no collection ID");
  } else if (there.status().code() == Code::kNotFound) {
    ETALON_RETURN_IF_ERROR(SetCollection(CollectionId(Random(seed).NextId())));
  } else {
    return there.status();
  }
  ETALON_RETURN_IF_ERROR(LoadVersions(dir_, "topology-", &topologies_));
  ETALON_RETURN_IF_ERROR(LoadVersions(dir_, "settings-", &settings_));
  ETALON_ASSIGN_OR_RETURN(const auto forms, ListMiddles(dir_, "form-", ".json"));
  for (const std::string& uid : forms) {
    const std::string form_path = fmt::format("{}/form-{}.json", dir_, uid);
    v1::FormRequest form;
    ETALON_ASSIGN_OR_RETURN(const std::string text, ReadFile(form_path));
    ETALON_RETURN_IF_ERROR(FromJson(form_path, text, &form));
    forms_.emplace(ShardUid(FromHex(uid)), std::move(form));
  }
  ETALON_ASSIGN_OR_RETURN(const auto doomed, ListMiddles(dir_, "doomed-", ""));
  for (const std::string& uid : doomed) doomed_.insert(ShardUid(FromHex(uid)));
  ETALON_ASSIGN_OR_RETURN(const auto processes, ListMiddles(dir_ + "/processes", "", ".json"));
  for (const std::string& name : processes) {
    const std::string process_path = fmt::format("{}/processes/{}.json", dir_, name);
    ETALON_ASSIGN_OR_RETURN(const json in, ReadJson(process_path));
    ETALON_ASSIGN_OR_RETURN(ProcessRecord record, RecordOf(process_path, in));
    processes_.emplace(record.name, std::move(record));
  }
  return OkStatus();
}

std::string Records::TopologyPath(std::uint64_t version) const {
  return fmt::format("{}/topology-{}.json", dir_, version);
}

Status Records::SetCollection(CollectionId collection) {
  ETALON_RETURN_IF_ERROR(ReplaceFile(
      dir_ + "/collection.json", json{{"collection", ToHex(collection.value())}}.dump(2) + "\n"));
  collection_ = collection;
  return OkStatus();
}

Status Records::AddTopology(const v1::Topology& topology) {
  ETALON_RETURN_IF_ERROR(
      CreateFile(TopologyPath(topology.version()), controller::ToJson(topology)));
  topologies_.emplace(topology.version(), topology);
  return OkStatus();
}

Status Records::AddSettings(const v1::Settings& settings) {
  ETALON_RETURN_IF_ERROR(CreateFile(fmt::format("{}/settings-{}.json", dir_, settings.version()),
                                    controller::ToJson(settings)));
  settings_.emplace(settings.version(), settings);
  return OkStatus();
}

Status Records::AddForm(const v1::FormRequest& form) {
  ETALON_RETURN_IF_ERROR(CreateFile(fmt::format("{}/form-{}.json", dir_, ToHex(form.shard())),
                                    controller::ToJson(form)));
  forms_.emplace(ShardUid(form.shard()), form);
  return OkStatus();
}

Status Records::AddDoomed(ShardUid shard) {
  ETALON_RETURN_IF_ERROR(
      CreateFile(fmt::format("{}/doomed-{}", dir_, ToHex(shard.value())), "retired, and empty\n"));
  doomed_.insert(shard);
  return OkStatus();
}

Status Records::PutProcess(const ProcessRecord& record) {
  if (const auto it = processes_.find(record.name); it != processes_.end() && it->second == record)
    return OkStatus();
  ETALON_RETURN_IF_ERROR(ReplaceFile(fmt::format("{}/processes/{}.json", dir_, record.name),
                                     ToJson(record).dump(2) + "\n"));
  processes_[record.name] = record;
  return OkStatus();
}

Status Records::RemoveProcess(const std::string& name) {
  std::error_code error;
  std::filesystem::remove(fmt::format("{}/processes/{}.json", dir_, name), error);
  if (error)
    return Internal(fmt::format("the record of {} cannot be removed: {}", name, error.message()));
  processes_.erase(name);
  return OkStatus();
}

Status Records::PutDiskAside(const ProcessRecord& record) {
  std::error_code error;
  if (!std::filesystem::exists(DiskPath(record.name), error)) return OkStatus();
  for (int k = 1;; ++k) {
    const std::string to =
        fmt::format("{}/retired/{}-{}-{}", dir_, record.name, ToHex(record.uid.value()), k);
    if (std::filesystem::exists(to, error)) continue;
    std::filesystem::rename(DiskPath(record.name), to, error);
    return error ? Internal(fmt::format("the disk of {} cannot be put aside: {}", record.name,
                                        error.message()))
                 : OkStatus();
  }
}

}  // namespace etalon::controller
