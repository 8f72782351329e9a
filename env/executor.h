#pragma once

#include <cstdint>

#include "common/time.h"
#include "common/unique_function.h"

namespace etalon {

using Task = UniqueFunction<void()>;

// Runs tasks one at a time, ordered by (time, sequence of posting). A task that takes long delays
// all others: work is cut into slices of about 1 ms.
//
// Threads: Post may be called from any thread; PostAt and Cancel only from a task of this executor
// or before it runs.
class Executor {
 public:
  using TimerId = std::uint64_t;  // never 0

  virtual ~Executor() = default;
  virtual void Post(Task task) = 0;
  virtual TimerId PostAt(SteadyTime when, Task task) = 0;
  // The task will not run any more; nothing happens if it already ran.
  virtual void Cancel(TimerId timer) = 0;
};

}  // namespace etalon
