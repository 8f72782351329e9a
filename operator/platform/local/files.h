// Small files, written so that a crash leaves the old or the new content, whole.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "common/status.h"

namespace etalon::controller {

// NOT_FOUND when there is none.
Result<std::string> ReadFile(const std::string& path);
enum class Durable : bool { kNo, kYes };
Status ReplaceFile(const std::string& path, const std::string& bytes,
                   Durable durable = Durable::kYes);
// Makes it, durably, if it is not there. The same content again is success; another content is
// refused with TOPOLOGY_CONFLICT.
Status CreateFile(const std::string& path, const std::string& bytes);
Status MakeDirs(const std::string& path);
// Names in it that begin with `prefix` and end with `suffix`, without both; sorted. An absent
// directory has none.
Result<std::vector<std::string>> ListMiddles(const std::string& dir, const std::string& prefix,
                                             const std::string& suffix);

// Protobuf's JSON, on many lines: for people too.
std::string ToJson(const google::protobuf::Message& message);
Status FromJson(const std::string& path, const std::string& json,
                google::protobuf::Message* message);

}  // namespace etalon::controller
