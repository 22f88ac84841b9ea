#pragma once

// The first layer's device beside that of a wide run: its pool, its scheduler, its readers, and the
// link between the two.

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
  Placement(const WideSettings& settings, RunResources& rest);

  [[nodiscard]] RunResources& resources() noexcept { return resources_; }
  [[nodiscard]] PlacedLayer& layer() noexcept { return layer_; }

  /// Begins the measured time. Both devices have nothing to do.
  void start();
  /// Returns the figures since then. The same.
  [[nodiscard]] PlacementFigures stop();

 private:
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
  PlacedBatch(Placement* first, Scheduler& rest, std::string_view kind,
              const std::stop_token& stop);
  Batch on_first;
  Batch on_rest;
};

}  // namespace weir
