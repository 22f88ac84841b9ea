#pragma once

// Parses the user's choice of pools to replay against.

#include <string>
#include <string_view>
#include <vector>

#include "allocator/pool_options.hpp"
#include "tools/replay/measure/measure.hpp"
#include "tools/replay/subject/pool_subject.hpp"

namespace weir::replay {

/// A pool with its settings, and a name that is unique in a table.
struct PoolChoice {
  std::string name;
  PoolOptions options;

  /// Returns whether its settings are the pool's defaults.
  [[nodiscard]] bool by_default() const;
};

/// Parses `naive`, `round:28` (its cutoff), `naive:1MiB` (its rounding of large sizes),
/// `best_fit:16MiB` or `best_fit:all` (its segments). Takes other options from `base`. Throws
/// UsageError naming `flag` for other text.
[[nodiscard]] PoolChoice parse_pool_choice(std::string_view flag, std::string_view text,
                                           const PoolOptions& base);
/// Parses a comma-separated list. `all` is every pool, with `round` at cutoffs 24 and 28. Drops
/// duplicates.
[[nodiscard]] std::vector<PoolChoice> parse_pool_choices(std::string_view flag,
                                                         std::string_view text,
                                                         const PoolOptions& base);

/// The choices of `weir replay --recommend`: every caching pool, `round` with cutoffs from 20 to
/// 28, `naive` with several roundings of large sizes.
[[nodiscard]] std::vector<PoolChoice> recommendable_choices(const PoolOptions& base);

/// Returns the environment variables that select this choice, as typed in a shell:
/// `WEIR_POOL=best_fit WEIR_POOL_SEGMENT_SIZE=256MiB`.
[[nodiscard]] std::string variables_of(const PoolChoice& choice);

/// Returns a candidate that makes this pool on `upstream`.
[[nodiscard]] Candidate candidate_of(const PoolChoice& choice, const MakeUpstream& upstream,
                                     std::uint64_t lag);

}  // namespace weir::replay
