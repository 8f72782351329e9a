#include "env/posix/logger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "env/posix/fd.h"

namespace etalon {
namespace {

// What is written to a pipe while `write` runs; at most what the pipe holds.
template <typename Write>
std::string Written(Write write) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe(ends), 0);
  const Fd in(ends[0]);
  {
    const Fd out(ends[1]);
    write(out.get());
  }
  std::string all;
  char buffer[4096];
  while (true) {
    const ssize_t n = ::read(in.get(), buffer, sizeof(buffer));
    if (n <= 0) return all;
    all.append(buffer, static_cast<std::size_t>(n));
  }
}

TEST(StderrLogger, OneLineOfJsonWithTheTime) {
  const std::string text = Written([](int fd) {
    StderrLogger logger(LogLevel::kInfo, fd);
    logger.Debug("dropped");
    logger.Info("bucket_moved", {{"bucket", 17}, {"to", "say \"x\"\n"}});
    logger.Error("bad");
  });
  EXPECT_THAT(
      text,
      testing::MatchesRegex(
          R"re(\{"time":"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z",)re"
          R"re("level":"info","event":"bucket_moved","bucket":"17","to":"say \\"x\\"\\n"\})re"
          "\n"
          R"re(\{"time":"[^"]*","level":"error","event":"bad"\})re"
          "\n"));
}

TEST(StderrLogger, LinesOfThreadsDoNotMix) {
  const std::string text = Written([](int fd) {
    StderrLogger logger(LogLevel::kInfo, fd);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&logger, t] {
        for (int i = 0; i < 50; ++i) logger.Info("e", {{"thread", t}});
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  int lines = 0;
  for (std::size_t at = 0; at < text.size(); ++lines) {
    const std::size_t end = text.find('\n', at);
    ASSERT_NE(end, std::string::npos);
    EXPECT_THAT(text.substr(at, end - at),
                testing::MatchesRegex(
                    R"re(\{"time":"[^"]*","level":"info","event":"e","thread":"[0-3]"\})re"));
    at = end + 1;
  }
  EXPECT_EQ(lines, 200);
}

}  // namespace
}  // namespace etalon
