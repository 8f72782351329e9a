#include "sim/world/world.h"

#include <gtest/gtest.h>

#include <vector>

namespace etalon::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Message {
  NodeName from;
  std::string bytes;
  SteadyTime at;
};

// A world whose nodes note what they receive.
struct Inboxes {
  explicit Inboxes(std::uint64_t seed) : world(seed) {}
  Env Add(const NodeName& name) {
    Env env = world.AddNode(name);
    Listen(name);
    return env;
  }
  void Listen(const NodeName& name) {
    world.SetReceiver(name, [this, name](const NodeName& from, Lane, std::string bytes) {
      got[name].push_back({from, std::move(bytes), world.now()});
    });
  }
  SimWorld world;
  std::map<NodeName, std::vector<Message>> got;
};

// Nodes that forward what they get, write it, and crash from time to time.
std::uint64_t Story(std::uint64_t seed) {
  SimWorld world(seed);
  world.net().options().loss_permille = 50;
  world.net().options().duplicate_permille = 50;
  const std::vector<NodeName> names = {"a", "b", "c"};
  std::map<NodeName, std::unique_ptr<Env>> envs;
  const auto start = [&](const NodeName& name) {
    world.SetReceiver(name, [&, name](const NodeName&, Lane lane, std::string bytes) {
      Env& env = *envs[name];
      env.disk.Submit({DiskOp::Write("f", env.random.Below(100), bytes), DiskOp::Sync("f")},
                      [&, name, lane, bytes](const Status& status) {
                        Env& self = *envs[name];
                        self.log.Info("wrote", {{"ok", status.ok()}});
                        self.net.Send(names[self.random.Below(3)], lane, bytes);
                      });
      env.core.PostAt(env.clock.Now() + milliseconds(5), [&world] { world.Mix(5); });
    });
  };
  for (const auto& name : names) {
    envs[name] = std::make_unique<Env>(world.AddNode(name));
    start(name);
  }
  for (int i = 0; i < 20; ++i) {
    const NodeName& victim = names[world.random().Below(3)];
    envs[victim]->net.Send(names[world.random().Below(3)], Lane::kControl,
                           std::string(10 + i, 'x'));
    world.RunFor(milliseconds(20));
    if (i % 5 == 4) {
      envs.erase(victim);
      world.Crash(victim);
      world.RunFor(milliseconds(3));
      envs[victim] = std::make_unique<Env>(world.Restart(victim));
      start(victim);
    }
  }
  return world.trace();
}

TEST(SimWorld, SameSeedSameHistory) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) EXPECT_EQ(Story(seed), Story(seed)) << seed;
}

TEST(SimWorld, DifferentSeedsDiffer) { EXPECT_NE(Story(1), Story(2)); }

TEST(SimWorld, TasksRunInTheOrderOfTimeThenPosting) {
  SimWorld world(1);
  Env env = world.AddNode("a");
  std::string order;
  const SteadyTime now = env.clock.Now();
  env.core.PostAt(now + milliseconds(2), [&] { order += 'd'; });
  env.core.PostAt(now + milliseconds(1), [&] { order += 'c'; });
  env.core.Post([&] { order += 'a'; });
  env.core.Post([&] { order += 'b'; });
  const auto cancelled = env.core.PostAt(now + milliseconds(1), [&] { order += 'x'; });
  env.core.Cancel(cancelled);
  world.RunFor(milliseconds(10));
  EXPECT_EQ(order, "abcd");
}

TEST(SimWorld, TimersFireByTheirNodesClock) {
  SimWorld world(1);
  Env fast = world.AddNode("fast", {seconds(100), 1000});
  Env slow = world.AddNode("slow", {seconds(0), -1000});
  std::map<std::string, SteadyTime> world_time;
  for (auto [name, env] : {std::pair<std::string, Env*>{"fast", &fast}, {"slow", &slow}}) {
    const SteadyTime due = env->clock.Now() + seconds(1000);
    env->core.PostAt(due, [&world, &world_time, name = name, env = env, due] {
      EXPECT_GE(env->clock.Now(), due);
      EXPECT_LT(env->clock.Now(), due + Duration(10));
      world_time[name] = world.now();
    });
  }
  world.RunFor(seconds(1100));
  ASSERT_EQ(world_time.size(), 2u);
  // 1000 s at +-1000 ppm: about a second early, about a second late.
  EXPECT_NEAR(std::chrono::duration<double>(world_time["fast"].time_since_epoch()).count(), 999.001,
              0.001);
  EXPECT_NEAR(std::chrono::duration<double>(world_time["slow"].time_since_epoch()).count(),
              1001.001, 0.001);
}

TEST(SimWorld, ClockConversionIsExactOverHours) {
  Events events;
  for (const std::int64_t drift : {-99999, -100, 0, 1, 100, 99999}) {
    const SimClock clock(events, std::chrono::hours(1), drift);
    for (std::int64_t t = 1; t < 30'000'000'000'000; t = t * 3 + 1) {
      const SteadyTime local{Duration(t) + std::chrono::hours(1)};
      const SteadyTime world = clock.ToWorld(local);
      EXPECT_GE(clock.ToLocal(world), local);
      EXPECT_LT(clock.ToLocal(world - Duration(1)), local);
    }
  }
}

TEST(SimWorld, ACrashEndsTasksTimersDiskAndInboundMessages) {
  Inboxes in(3);
  Env a = in.Add("a");
  Env b = in.Add("b");
  int ran = 0;
  b.core.Post([&] { ++ran; });
  b.core.PostAt(b.clock.Now() + milliseconds(1), [&] { ++ran; });
  b.disk.Submit({DiskOp::Write("f", 0, "x")}, [&](const Status&) { ++ran; });
  a.net.Send("b", Lane::kControl, "to the old life");
  b.net.Send("a", Lane::kControl, "from the old life");
  in.world.Crash("b");
  b.core.Post([&] { ++ran; });
  b.core.PostAt(b.clock.Now(), [&] { ++ran; });
  a.net.Send("b", Lane::kControl, "to nobody");
  Env next = in.world.Restart("b");
  in.Listen("b");
  a.net.Send("b", Lane::kControl, "to the new life");
  in.world.RunFor(seconds(1));
  EXPECT_EQ(ran, 0);
  ASSERT_EQ(in.got["b"].size(), 1u);
  EXPECT_EQ(in.got["b"][0].bytes, "to the new life");
  ASSERT_EQ(in.got["a"].size(), 1u);
  next.core.Post([&] { ++ran; });
  in.world.RunFor(milliseconds(1));
  EXPECT_EQ(ran, 1);
}

TEST(SimWorld, DestroyedTasksMayCancelOthers) {
  SimWorld world(1);
  Env env = world.AddNode("a");
  struct Owner {
    Executor& core;
    Executor::TimerId timer;
    ~Owner() { core.Cancel(timer); }
  };
  for (int i = 0; i < 10; ++i) {
    const auto timer = env.core.PostAt(env.clock.Now() + milliseconds(1), [] {});
    env.core.Post([owner = std::make_shared<Owner>(Owner{env.core, timer})] {});
  }
  world.Crash("a");
  world.RunFor(seconds(1));
  EXPECT_FALSE(world.IsUp("a"));
}

TEST(SimWorld, PauseStopsANodeAndKeepsItsOrder) {
  Inboxes in(3);
  Env a = in.Add("a");
  Env b = in.Add("b");
  std::string order;
  b.core.PostAt(b.clock.Now() + milliseconds(2), [&] { order += '2'; });
  b.core.PostAt(b.clock.Now() + milliseconds(1), [&] { order += '1'; });
  a.net.Send("b", Lane::kControl, "hello");
  in.world.Pause("b", milliseconds(500));
  in.world.RunFor(milliseconds(499));
  EXPECT_EQ(order, "");
  EXPECT_TRUE(in.got["b"].empty());
  in.world.RunFor(milliseconds(2));
  EXPECT_EQ(order, "12");
  EXPECT_EQ(in.got["b"].size(), 1u);
}

TEST(SimWorld, RunUntilStopsAtTheEventOrTheLimit) {
  SimWorld world(1);
  int n = 0;
  for (int i = 1; i <= 10; ++i) world.After(milliseconds(i), [&] { ++n; });
  EXPECT_TRUE(world.RunUntil([&] { return n == 4; }, seconds(1)));
  EXPECT_EQ(n, 4);
  EXPECT_EQ(world.now().time_since_epoch(), milliseconds(4));
  EXPECT_FALSE(world.RunUntil([&] { return n == 11; }, seconds(1)));
  EXPECT_EQ(world.now().time_since_epoch(), milliseconds(1004));
}

TEST(Network, LatencyHasATail) {
  Inboxes in(5);
  Env a = in.Add("a");
  in.Add("b");
  NetworkOptions& options = in.world.net().options();
  options.slow_permille = 20;
  const SteadyTime sent = in.world.now();
  for (int i = 0; i < 2000; ++i) a.net.Send("b", Lane::kControl, "x");
  in.world.RunFor(seconds(1));
  ASSERT_EQ(in.got["b"].size(), 2000u);
  int late = 0;
  for (const Message& m : in.got["b"]) {
    EXPECT_GE(m.at - sent, options.latency_min);
    EXPECT_LE(m.at - sent, options.slow_max);
    late += m.at - sent > options.latency_max;
  }
  EXPECT_GT(late, 10);
  EXPECT_LT(late, 100);
}

TEST(Network, LosesDoublesAndReorders) {
  Inboxes in(5);
  Env a = in.Add("a");
  in.Add("b");
  in.world.net().options().loss_permille = 200;
  in.world.net().options().duplicate_permille = 100;
  for (int i = 0; i < 1000; ++i) a.net.Send("b", Lane::kControl, std::to_string(i));
  in.world.RunFor(seconds(1));
  std::map<std::string, int> copies;
  bool reordered = false;
  int last = -1;
  for (const Message& m : in.got["b"]) {
    ++copies[m.bytes];
    reordered |= std::stoi(m.bytes) < last;
    last = std::stoi(m.bytes);
  }
  EXPECT_TRUE(reordered);
  EXPECT_NEAR(static_cast<double>(copies.size()), 820, 60);
  int doubled = 0;
  for (const auto& [bytes, n] : copies) doubled += n == 2;
  EXPECT_NEAR(doubled, 80, 40);
}

TEST(Network, AStreamKeepsItsOrder) {
  Inboxes in(5);
  Env a = in.Add("a");
  in.Add("b");
  in.world.net().options().reorder = false;
  for (int i = 0; i < 500; ++i) a.net.Send("b", Lane::kControl, std::to_string(i));
  in.world.RunFor(seconds(1));
  ASSERT_EQ(in.got["b"].size(), 500u);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(in.got["b"][i].bytes, std::to_string(i));
}

TEST(Network, CutsAreDirectional) {
  Inboxes in(5);
  Env a = in.Add("a");
  Env b = in.Add("b");
  Env c = in.Add("c");
  const auto all_send = [&] {
    in.got.clear();
    a.net.Send("b", Lane::kControl, "ab");
    b.net.Send("a", Lane::kControl, "ba");
    a.net.Send("c", Lane::kControl, "ac");
    c.net.Send("a", Lane::kControl, "ca");
    in.world.RunFor(seconds(1));
  };
  in.world.net().CutOneWay("a", "b");
  all_send();
  EXPECT_EQ(in.got["b"].size(), 0u);
  EXPECT_EQ(in.got["a"].size(), 2u);
  EXPECT_EQ(in.got["c"].size(), 1u);

  in.world.net().Heal("a", "b");
  in.world.net().Cut("a", "c");
  all_send();
  EXPECT_EQ(in.got["b"].size(), 1u);
  EXPECT_EQ(in.got["a"].size(), 1u);
  EXPECT_EQ(in.got["c"].size(), 0u);

  in.world.net().Isolate("b");
  all_send();
  EXPECT_TRUE(in.got["a"].empty() && in.got["b"].empty() && in.got["c"].empty());

  in.world.net().HealAll();
  all_send();
  EXPECT_EQ(in.got["a"].size() + in.got["b"].size() + in.got["c"].size(), 4u);
}

TEST(Network, ACutDropsWhatIsUnderWay) {
  Inboxes in(5);
  Env a = in.Add("a");
  in.Add("b");
  a.net.Send("b", Lane::kControl, "x");
  in.world.net().Cut("a", "b");
  in.world.RunFor(seconds(1));
  EXPECT_TRUE(in.got["b"].empty());
}

TEST(Network, LanesAreBoundedInBytesAndDrain) {
  Inboxes in(5);
  Env a = in.Add("a");
  in.Add("b");
  in.world.net().options().lane_bytes = {1000, 5000};
  int queued = 0;
  while (a.net.Send("b", Lane::kControl, std::string(100, 'x')) == SendResult::kQueued) ++queued;
  EXPECT_EQ(queued, 10);
  EXPECT_EQ(a.net.Send("b", Lane::kBulk, std::string(100, 'x')), SendResult::kQueued);
  EXPECT_EQ(a.net.Send("b", Lane::kControl, std::string(100, 'x')), SendResult::kFull);
  in.world.RunFor(seconds(1));
  EXPECT_EQ(a.net.Send("b", Lane::kControl, std::string(1000, 'x')), SendResult::kQueued);
  in.world.Crash("b");
  in.world.Restart("b");
  EXPECT_EQ(a.net.Send("b", Lane::kControl, std::string(1000, 'x')), SendResult::kQueued)
      << "what was on its way to the old life no longer counts";
  EXPECT_EQ(a.net.Send("nobody", Lane::kControl, "x"), SendResult::kUnknown);
}

}  // namespace
}  // namespace etalon::sim
