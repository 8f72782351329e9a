// What every Executor promises, on the real one and on the simulated one.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "env/posix/clock.h"
#include "env/posix/loop_executor.h"
#include "sim/world/world.h"

namespace etalon {
namespace {

using std::chrono::milliseconds;

class Rig {
 public:
  virtual ~Rig() = default;
  virtual Executor& executor() = 0;
  virtual const Clock& clock() = 0;
  // Runs tasks until one of them calls Stop.
  virtual void Run() = 0;
  virtual void Stop() = 0;
};

class PosixRig final : public Rig {
 public:
  Executor& executor() override { return executor_; }
  const Clock& clock() override { return clock_; }
  void Run() override { executor_.Run(); }
  void Stop() override { executor_.Stop(); }

 private:
  PosixClock clock_;
  LoopExecutor executor_{clock_};
};

class SimRig final : public Rig {
 public:
  Executor& executor() override { return env_.core; }
  const Clock& clock() override { return env_.clock; }
  void Run() override {
    stop_ = false;
    ASSERT_TRUE(world_.RunUntil([this] { return stop_; }, std::chrono::hours(1)));
  }
  void Stop() override { stop_ = true; }

 private:
  sim::SimWorld world_{1};
  Env env_ = world_.AddNode("n");
  bool stop_ = false;
};

enum class Kind { kPosix, kSim };

class ExecutorContract : public testing::TestWithParam<Kind> {
 protected:
  ExecutorContract() {
    if (GetParam() == Kind::kPosix) {
      rig_ = std::make_unique<PosixRig>();
    } else {
      rig_ = std::make_unique<SimRig>();
    }
  }
  Executor& executor() { return rig_->executor(); }
  SteadyTime Now() { return rig_->clock().Now(); }
  void RunUntilIdle() {  // what was posted, and timers within the next 50 ms
    executor().PostAt(Now() + milliseconds(50), [this] { rig_->Stop(); });
    rig_->Run();
  }
  std::unique_ptr<Rig> rig_;
  std::string order_;
};

TEST_P(ExecutorContract, PostedTasksRunInOrderAndNeverInsidePost) {
  executor().Post([&] {
    executor().Post([&] { order_ += 'c'; });
    order_ += 'a';
  });
  executor().Post([&] { order_ += 'b'; });
  EXPECT_EQ(order_, "");
  RunUntilIdle();
  EXPECT_EQ(order_, "abc");
}

TEST_P(ExecutorContract, TimersRunByTimeThenByPosting) {
  const SteadyTime now = Now();
  executor().PostAt(now + milliseconds(20), [&] { order_ += 'd'; });
  executor().PostAt(now + milliseconds(10), [&] { order_ += 'b'; });
  executor().PostAt(now + milliseconds(10), [&] { order_ += 'c'; });
  executor().PostAt(now - milliseconds(10), [&] { order_ += 'a'; });
  RunUntilIdle();
  EXPECT_EQ(order_, "abcd");
}

TEST_P(ExecutorContract, TimersAreNeverEarly) {
  const SteadyTime due = Now() + milliseconds(7);
  bool ran = false;
  executor().PostAt(due, [&] {
    ran = true;
    EXPECT_GE(Now(), due);
  });
  RunUntilIdle();
  EXPECT_TRUE(ran);
}

TEST_P(ExecutorContract, CancelledTimersDoNotRun) {
  const auto a = executor().PostAt(Now() + milliseconds(1), [&] { order_ += 'a'; });
  executor().PostAt(Now() + milliseconds(2), [&] { order_ += 'b'; });
  EXPECT_NE(a, 0u);
  executor().Cancel(a);
  executor().Cancel(a);
  executor().Cancel(Executor::TimerId{12345678});
  RunUntilIdle();
  EXPECT_EQ(order_, "b");
}

TEST_P(ExecutorContract, ATaskMayCancelTimersEvenDueOnes) {
  Executor::TimerId second = 0;
  const SteadyTime when = Now() + milliseconds(1);
  Executor::TimerId first = 0;
  first = executor().PostAt(when, [&] {
    order_ += '1';
    executor().Cancel(second);
    executor().Cancel(first);  // itself: nothing happens
  });
  second = executor().PostAt(when, [&] { order_ += '2'; });
  RunUntilIdle();
  EXPECT_EQ(order_, "1");
}

TEST_P(ExecutorContract, APostingTaskDoesNotStarveTimers) {
  bool due = false;
  std::function<void()> again = [&] {
    if (!due) executor().Post([&] { again(); });
  };
  // The simulated clock does not move while tasks post tasks.
  if (GetParam() == Kind::kPosix) again();
  executor().PostAt(Now() + milliseconds(1), [&] { due = true; });
  RunUntilIdle();
  EXPECT_TRUE(due);
}

TEST_P(ExecutorContract, CancelDestroysTheTask) {
  auto token = std::make_shared<int>(1);
  const auto timer = executor().PostAt(Now() + milliseconds(1), [token] {});
  EXPECT_EQ(token.use_count(), 2);
  executor().Cancel(timer);
  EXPECT_EQ(token.use_count(), 1);
}

INSTANTIATE_TEST_SUITE_P(Real, ExecutorContract, testing::Values(Kind::kPosix));
INSTANTIATE_TEST_SUITE_P(Simulated, ExecutorContract, testing::Values(Kind::kSim));

}  // namespace
}  // namespace etalon
