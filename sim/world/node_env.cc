#include "sim/world/node_env.h"

#include <cstdio>

#include "common/check.h"
#include "common/crc32c.h"

namespace etalon::sim {

namespace {
constexpr std::int64_t kMillion = 1'000'000;

// a * b / c without overflow on the way.
std::int64_t Scale(std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<std::int64_t>(static_cast<__int128>(a) * b / c);
}
}  // namespace

SimClock::SimClock(const Events& events, Duration skew, std::int64_t drift_ppm)
    : events_(events), skew_(skew), drift_ppm_(drift_ppm) {
  ETALON_CHECK(drift_ppm > -kMillion / 10 && drift_ppm < kMillion / 10,
               "a clock that drifts by more than a tenth");
}

SteadyTime SimClock::ToLocal(SteadyTime world) const {
  const std::int64_t t = world.time_since_epoch().count();
  return SteadyTime(skew_ + Duration(t + Scale(t, drift_ppm_, kMillion)));
}

SteadyTime SimClock::ToWorld(SteadyTime local) const {
  if (local == SteadyTime::max()) return local;
  const std::int64_t ran = (local.time_since_epoch() - skew_).count();
  SteadyTime world{Duration(Scale(ran, kMillion, kMillion + drift_ppm_))};
  while (ToLocal(world) >= local) world -= Duration(1);  // the division rounds either way
  while (ToLocal(world) < local) world += Duration(1);
  return world;
}

void SimExecutor::Post(Task task) {
  if (on_) events_.Schedule(events_.now(), owner_, EventKind::kTask, std::move(task));
}

Executor::TimerId SimExecutor::PostAt(SteadyTime when, Task task) {
  if (!on_) return Events::Id{1} << 63;  // no event has it
  return events_.Schedule(clock_.ToWorld(when), owner_, EventKind::kTimer, std::move(task));
}

void SimLogger::Log(LogLevel level, std::string_view event,
                    std::initializer_list<LogField> fields) {
  const std::string line = FormatLogLine(level, event, fields);
  events_.Mix(Crc32c(line));
  if (echo_) {
    std::fprintf(stderr, "%12.6f %s %s\n",
                 std::chrono::duration<double>(events_.now().time_since_epoch()).count(),
                 node_.c_str(), line.c_str());
  }
}

}  // namespace etalon::sim
