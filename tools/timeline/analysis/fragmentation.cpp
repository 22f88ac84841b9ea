#include "tools/timeline/analysis/fragmentation.hpp"

#include <algorithm>

#include "tools/timeline/model/nearest.hpp"

namespace weir::timeline {
namespace {

double share_lost(double used, double all) { return all > 0 ? std::max(0.0, 1 - used / all) : 0; }

/// Sums of bytes times nanoseconds.
struct Areas {
  double requested = 0;
  double allocated = 0;
  double reserved = 0;

  void add(const PoolReplay& replay, std::uint64_t until) {
    const auto time = static_cast<double>(less_or_zero(until, replay.at()));
    requested += time * static_cast<double>(replay.requested());
    allocated += time * static_cast<double>(replay.counts().allocated);
    reserved += time * static_cast<double>(replay.counts().reserved());
  }
};

std::uint64_t permille_unused(const PoolCounts& counts) {
  const auto reserved = static_cast<double>(counts.reserved());
  return nearest(1000 * share_lost(static_cast<double>(counts.allocated), reserved));
}

}  // namespace

Fragmentation fragmentation(const Index& index, const PoolInfo& pool, Span span,
                            std::uint32_t columns) {
  Fragmentation figures;
  Reducer unused(span, columns);
  Reducer rounding(span, columns);
  Reducer permille(span, columns);
  Areas areas;
  std::uint64_t peak_allocated = 0;
  std::uint64_t peak_held = 0;
  std::uint64_t peak_reserved = 0;
  PoolReplay replay(index, pool);
  while (replay.next()) {
    const PoolCounts& counts = replay.counts();
    areas.add(replay, std::min(replay.next_at(), index.span().end));
    peak_allocated = std::max(peak_allocated, counts.allocated);
    peak_held = std::max(peak_held, add_capped(counts.allocated, counts.awaiting));
    peak_reserved = std::max(peak_reserved, counts.reserved());
    const std::uint64_t not_allocated = less_or_zero(counts.reserved(), counts.allocated);
    figures.most_unused = std::max(figures.most_unused, not_allocated);
    unused.add({replay.at(), not_allocated});
    permille.add({replay.at(), permille_unused(counts)});
    if (replay.known())
      rounding.add({replay.at(), less_or_zero(counts.allocated, replay.requested())});
  }
  figures.at_peak =
      share_lost(static_cast<double>(peak_allocated), static_cast<double>(peak_reserved));
  figures.held_at_peak =
      share_lost(static_cast<double>(peak_held), static_cast<double>(peak_reserved));
  figures.mean = share_lost(areas.allocated, areas.reserved);
  figures.waste = share_lost(areas.requested, areas.allocated);
  figures.unused = unused.finish();
  figures.rounding = rounding.finish();
  figures.permille = permille.finish();
  return figures;
}

}  // namespace weir::timeline
