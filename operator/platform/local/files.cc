#include "operator/platform/local/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "env/posix/fd.h"

namespace etalon::controller {
namespace {

namespace fs = std::filesystem;

Status Failed(const std::string& path, std::string_view what) {
  return Internal(fmt::format("{} {}: {}", path, what, std::strerror(errno)));
}

Status SyncParent(const std::string& path) {
  const std::string dir = fs::path(path).parent_path().string();
  const Fd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return Failed(dir, "cannot be made durable");
  return OkStatus();
}

Status Write(const std::string& path, const std::string& bytes, Durable durable) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return Failed(path, "cannot be opened");
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t n = ::write(fd.get(), bytes.data() + written, bytes.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failed(path, "cannot be written");
    written += static_cast<std::size_t>(n);
  }
  if (durable == Durable::kYes && ::fdatasync(fd.get()) != 0)
    return Failed(path, "cannot be made durable");
  return OkStatus();
}

}  // namespace

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return NotFound(path + " cannot be read");
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

Status ReplaceFile(const std::string& path, const std::string& bytes, Durable durable) {
  const std::string temporary = path + ".new";
  ETALON_RETURN_IF_ERROR(Write(temporary, bytes, durable));
  if (::rename(temporary.c_str(), path.c_str()) != 0) return Failed(path, "cannot be replaced");
  return durable == Durable::kYes ? SyncParent(path) : OkStatus();
}

Status CreateFile(const std::string& path, const std::string& bytes) {
  const std::string temporary = path + ".new";
  ETALON_RETURN_IF_ERROR(Write(temporary, bytes, Durable::kYes));
  // link() fails when the name is taken, and the file is whole from the first moment on.
  const bool linked = ::link(temporary.c_str(), path.c_str()) == 0;
  const int why = errno;
  ::unlink(temporary.c_str());
  if (linked) return SyncParent(path);
  if (why != EEXIST) {
    errno = why;
    return Failed(path, "cannot be made");
  }
  ETALON_ASSIGN_OR_RETURN(const std::string there, ReadFile(path));
  if (there == bytes) return OkStatus();
  return FailedPrecondition(Reason::kTopologyConflict, path + " is there with another content");
}

Status MakeDirs(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? Internal(fmt::format("{} cannot be made: {}", path, error.message())) : OkStatus();
}

Result<std::vector<std::string>> ListMiddles(const std::string& dir, const std::string& prefix,
                                             const std::string& suffix) {
  std::vector<std::string> out;
  std::error_code error;
  if (!fs::exists(dir, error)) return out;
  fs::directory_iterator it(dir, error);
  if (error) return Internal(fmt::format("{} cannot be listed: {}", dir, error.message()));
  for (; it != fs::directory_iterator(); it.increment(error)) {
    if (error) return Internal(fmt::format("{} cannot be listed: {}", dir, error.message()));
    const std::string name = it->path().filename().string();
    if (name.size() <= prefix.size() + suffix.size() || name.rfind(prefix, 0) != 0 ||
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0) {
      continue;
    }
    out.push_back(name.substr(prefix.size(), name.size() - prefix.size() - suffix.size()));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  std::string out;
  (void)google::protobuf::util::MessageToJsonString(message, &out, options);
  return out;
}

Status FromJson(const std::string& path, const std::string& json,
                google::protobuf::Message* message) {
  const auto status = google::protobuf::util::JsonStringToMessage(json, message);
  return status.ok() ? OkStatus()
                     : DataLoss(fmt::format("{} is damaged: {}", path, status.ToString()));
}

}  // namespace etalon::controller
