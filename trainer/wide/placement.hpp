#pragma once

// The first layer's device beside that of a wide run: its pool, its scheduler, its readers, and the
// link between the two.

#include <chrono>
#include <stop_token>
#include <string_view>

#include "scheduler/device_link.hpp"
#include "scheduler/scheduler.hpp"
#include "trainer/run/run_resources.hpp"
#include "trainer/wide/wide_network.hpp"
#include "trainer/wide/wide_settings.hpp"
#include "trainer/wide/wide_train.hpp"

namespace weir {

class Placement {
 public:
  /// `rest` must outlive it. Throws OutOfMemory as RunResources does.
  Placement(const WideSettings& settings, RunResources& rest)
      : rest_(rest),
        resources_(settings.first_layer_settings()),
        link_(resources_.scheduler(), rest.scheduler()),
        layer_(resources_.operations(), rest.scheduler(), link_, settings.optimizer_options()) {}

  [[nodiscard]] RunResources& resources() noexcept { return resources_; }
  [[nodiscard]] PlacedLayer& layer() noexcept { return layer_; }

  /// Begins the measured time. Both devices have nothing to do.
  void start() {
    to_rest_ = link_.copied_to(rest_.scheduler());
    to_first_ = link_.copied_to(resources_.scheduler());
  }
  /// Returns the figures since then. The same.
  [[nodiscard]] PlacementFigures stop() {
    TrainResult run;
    resources_.collect(run);
    return {.memory = resources_.scheduler().memory_info(),
            .reserved_peak = run.pool.reserved.peak,
            .held_peak = run.pool.held.peak,
            .to_rest = since(to_rest_, link_.copied_to(rest_.scheduler())),
            .to_first = since(to_first_, link_.copied_to(resources_.scheduler())),
            .staging = link_.staging()};
  }

 private:
  [[nodiscard]] static CopyFigures since(const LinkFigures& before, const LinkFigures& now) {
    return {.bytes = now.bytes - before.bytes,
            .seconds = std::chrono::duration<double>(now.time - before.time).count()};
  }

  RunResources& rest_;
  RunResources resources_;
  DeviceLink link_;  ///< waits for its copies, which use all above
  PlacedLayer layer_;
  LinkFigures to_rest_;
  LinkFigures to_first_;
};

/// One batch on both devices. Always begun in this order: see docs/placement.md.
struct PlacedBatch {
  /// `first` may be null. Throws Cancelled.
  PlacedBatch(Placement* first, Scheduler& rest, std::string_view kind, const std::stop_token& stop)
      : on_first(first != nullptr ? first->resources().scheduler().begin_batch(kind, {.stop = stop})
                                  : Batch()),
        on_rest(rest.begin_batch(kind, {.stop = stop})) {}
  Batch on_first;
  Batch on_rest;
};

}  // namespace weir
