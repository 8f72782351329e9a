#include "env/posix/os.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "env/posix/temp_dir.h"

namespace etalon {
namespace {

TEST(OsSeed, Differs) { EXPECT_NE(OsSeed(), OsSeed()); }

TEST(DirLock, OneHolderAtATime) {
  const TempDir dir;
  {
    const Result<DirLock> first = DirLock::Acquire(dir.path());
    ASSERT_TRUE(first.ok()) << first.status().ToString();
    const Result<DirLock> second = DirLock::Acquire(dir.path());
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.status().code(), Code::kFailedPrecondition);
    EXPECT_NE(second.status().message().find(dir.path()), std::string::npos);
    EXPECT_NE(second.status().message().find("process " + std::to_string(::getpid())),
              std::string::npos)
        << second.status().ToString();
  }
  EXPECT_TRUE(DirLock::Acquire(dir.path()).ok()) << "given back";
}

TEST(DirLock, AnotherProcessIsRefusedAndDeathGivesBack) {
  const TempDir dir;
  int to_parent[2];
  int to_child[2];
  ASSERT_EQ(::pipe(to_parent), 0);
  ASSERT_EQ(::pipe(to_child), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  char byte = 0;
  if (child == 0) {
    const Result<DirLock> lock = DirLock::Acquire(dir.path());
    byte = lock.ok() ? 'y' : 'n';
    if (::write(to_parent[1], &byte, 1) != 1) ::_exit(1);
    if (::read(to_child[0], &byte, 1) != 1) ::_exit(2);
    ::_exit(0);  // without giving it back
  }
  ASSERT_EQ(::read(to_parent[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  const Result<DirLock> refused = DirLock::Acquire(dir.path());
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("process " + std::to_string(child)), std::string::npos);
  ASSERT_EQ(::write(to_child[1], &byte, 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(DirLock::Acquire(dir.path()).ok());
  for (const int fd : {to_parent[0], to_parent[1], to_child[0], to_child[1]}) ::close(fd);
}

TEST(DirLock, AMissingDirectoryIsTold) {
  EXPECT_EQ(DirLock::Acquire("/nonexistent/etalon").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace etalon
