#include "bench/show/verify.h"

#include <mutex>

namespace etalon::show {

namespace {
constexpr std::size_t kInFlight = 512;
constexpr std::size_t kMostNamed = 10;
}  // namespace

std::vector<std::string> VerifyDocuments(Client& client,
                                         const std::map<std::string, std::vector<Package>>& index) {
  std::vector<std::string> wrong;
  std::mutex mutex;
  Window window(kInFlight);
  const auto check = [&](const std::string& source, const char* space, const std::string& key,
                         const std::string& expected) {
    window.Enter();
    client.Get(source, space, key, v1::MODE_RW,
               [&, space, key, expected](const Status& status, const std::string& bytes) {
                 v1::GetResult result;
                 if (!status.ok() || !result.ParseFromString(bytes) || !result.found() ||
                     result.value() != expected) {
                   std::lock_guard lock(mutex);
                   if (wrong.size() < kMostNamed) {
                     wrong.push_back(std::string(space) + " " + key + ": " +
                                     (!status.ok()     ? status.ToString()
                                      : result.found() ? "differs from what was put"
                                                       : "is not there"));
                   }
                 }
                 window.Leave();
               });
  };
  for (const auto& [source, packages] : index) {
    for (const Package& package : packages) check(source, "packages", package.key, package.json);
    check(source, "sources", source, std::to_string(packages.size()));
  }
  window.Drain();
  return wrong;
}

}  // namespace etalon::show
