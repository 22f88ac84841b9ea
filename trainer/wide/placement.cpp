#include "trainer/wide/placement.hpp"

#include <chrono>

namespace weir {
namespace {

CopyFigures since(const LinkFigures& before, const LinkFigures& now) {
  return {.bytes = now.bytes - before.bytes,
          .seconds = std::chrono::duration<double>(now.time - before.time).count()};
}

}  // namespace

Placement::Placement(const WideSettings& settings, RunResources& rest)
    : rest_(rest),
      resources_(settings.first_layer_settings()),
      link_(resources_.scheduler(), rest.scheduler()),
      layer_(resources_.operations(), rest.scheduler(), link_, settings.optimizer_options()) {}

void Placement::start() {
  to_rest_ = link_.copied_to(rest_.scheduler());
  to_first_ = link_.copied_to(resources_.scheduler());
}

PlacementFigures Placement::stop() {
  TrainResult run;
  resources_.collect(run);
  return {.memory = resources_.scheduler().memory_info(),
          .reserved_peak = run.pool.reserved.peak,
          .held_peak = run.pool.held.peak,
          .to_rest = since(to_rest_, link_.copied_to(rest_.scheduler())),
          .to_first = since(to_first_, link_.copied_to(resources_.scheduler())),
          .staging = link_.staging()};
}

PlacedBatch::PlacedBatch(Placement* first, Scheduler& rest, std::string_view kind,
                         const std::stop_token& stop)
    : on_first(first != nullptr ? first->resources().scheduler().begin_batch(kind, {.stop = stop})
                                : Batch()),
      on_rest(rest.begin_batch(kind, {.stop = stop})) {}

}  // namespace weir
