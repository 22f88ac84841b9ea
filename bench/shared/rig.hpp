#pragma once

// The common rig of most benchmarks: the cpu device with a pool and a scheduler, and a way to keep
// its streams busy.

#include <initializer_list>
#include <latch>
#include <memory>

#include "allocator/pool.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/scheduler.hpp"

namespace weir::bench {

struct Rig {
  explicit Rig(const SchedulerOptions& options = {}) : scheduler(device, pool, options) {}

  Device device{std::make_unique<CpuDevice>(gib(1))};
  Pool pool{device.memory()};
  Scheduler scheduler;
};

/// Starts one operation on each stream, which runs until the destructor; the destructor then waits
/// for all work behind them.
class Busy {
 public:
  explicit Busy(Scheduler& scheduler,
                std::initializer_list<StreamRole> roles = {StreamRole::kCompute})
      : scheduler_(scheduler), begun_(static_cast<std::ptrdiff_t>(roles.size())) {
    for (const StreamRole role : roles) {
      scheduler_.submit("busy", {.stream = role}, [this](Stream&, Inputs, Outputs) {
        begun_.count_down();
        over_.wait();
      });
    }
    begun_.wait();
  }
  ~Busy() {
    over_.count_down();
    scheduler_.wait_all();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  Scheduler& scheduler_;
  std::latch begun_;
  std::latch over_{1};
};

}  // namespace weir::bench
