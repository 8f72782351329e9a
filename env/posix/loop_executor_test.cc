#include "env/posix/loop_executor.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "env/posix/clock.h"

namespace etalon {
namespace {

TEST(PosixClock, DoesNotGoBack) {
  const PosixClock clock;
  SteadyTime last = clock.Now();
  EXPECT_GT(last.time_since_epoch().count(), 0);
  for (int i = 0; i < 1000; ++i) {
    const SteadyTime now = clock.Now();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(LoopExecutor, TasksOfManyThreadsRunOnTheLoopsThreadEachThreadsInOrder) {
  const PosixClock clock;
  LoopExecutor executor(clock);
  constexpr int kThreads = 4;
  constexpr int kTasks = 2000;
  std::vector<std::vector<int>> got(kThreads);
  int left = kThreads * kTasks;
  std::thread::id loop;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        executor.Post([&, t, i] {
          EXPECT_EQ(std::this_thread::get_id(), loop);
          got[t].push_back(i);
          if (--left == 0) executor.Stop();
        });
      }
    });
  }
  loop = std::this_thread::get_id();
  executor.Run();
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<int>& of_thread : got) {
    ASSERT_EQ(of_thread.size(), static_cast<std::size_t>(kTasks));
    for (int i = 0; i < kTasks; ++i) EXPECT_EQ(of_thread[i], i);
  }
}

TEST(LoopExecutor, APostFromOutsideWakesASleepingLoop) {
  const PosixClock clock;
  LoopExecutor executor(clock);
  executor.PostAt(clock.Now() + std::chrono::hours(1), [] { FAIL(); });
  std::thread loop([&] { executor.Run(); });
  bool ran = false;
  executor.Post([&] { ran = true; });
  executor.Post([&] { executor.Stop(); });
  loop.join();
  EXPECT_TRUE(ran);
}

TEST(LoopExecutor, StopFromOutsideEndsASleepingLoop) {
  const PosixClock clock;
  LoopExecutor executor(clock);
  std::thread loop([&] { executor.Run(); });
  executor.Stop();
  loop.join();
}

TEST(LoopExecutor, StopEndsAfterTheTaskAndTheRestWaits) {
  const PosixClock clock;
  LoopExecutor executor(clock);
  int ran = 0;
  executor.PostAt(clock.Now(), [&] {
    ++ran;
    executor.Stop();
  });
  executor.PostAt(clock.Now(), [&] { ++ran; });
  executor.Post([&] {
    ++ran;
    executor.Stop();
  });
  executor.Run();
  EXPECT_EQ(ran, 1);
  executor.Run();
  EXPECT_EQ(ran, 3);
  executor.Stop();
  executor.Run();  // ends at once
  EXPECT_EQ(ran, 3);
}

TEST(LoopExecutor, WhatDidNotRunGoesWithTheExecutor) {
  const PosixClock clock;
  auto token = std::make_shared<int>(1);
  {
    LoopExecutor executor(clock);
    struct Owner {
      LoopExecutor& executor;
      Executor::TimerId timer;
      ~Owner() { executor.Cancel(timer); }
    };
    const auto timer = executor.PostAt(clock.Now(), [token] {});
    executor.Post([token, owner = std::make_shared<Owner>(Owner{executor, timer})] {});
    executor.PostAt(clock.Now(),
                    [token, owner = std::make_shared<Owner>(Owner{executor, timer})] {});
  }
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
}  // namespace etalon
