#pragma once

// Which of our pools a trace is replayed against, as a user names them.

#include <string>
#include <string_view>
#include <vector>

#include "allocator/pool_options.hpp"
#include "tools/replay/measure/measure.hpp"
#include "tools/replay/subject/pool_subject.hpp"

namespace weir::replay {

/// A pool with its settings, and a name that tells it from the others in a table.
struct PoolChoice {
  std::string name;
  PoolOptions options;

  /// Whether its settings are what holds where nothing but the pool is set.
  [[nodiscard]] bool by_default() const;
};

/// `naive`, `round:28` (its cutoff), `naive:1MiB` (what large sizes are rounded to),
/// `best_fit:16MiB` or `best_fit:all` (its segments); the rest as in `base`. UsageError naming
/// `flag` otherwise.
[[nodiscard]] PoolChoice parse_pool_choice(std::string_view flag, std::string_view text,
                                           const PoolOptions& base);
/// Several, with commas between them. `all` is every pool that there is, `round` with the cutoffs
/// 24 and 28. The same pool twice counts once.
[[nodiscard]] std::vector<PoolChoice> parse_pool_choices(std::string_view flag,
                                                         std::string_view text,
                                                         const PoolOptions& base);

/// What `weir replay --recommend` chooses from: every pool that keeps memory, `round` with cutoffs
/// from 20 to 28, `naive` with several roundings of large sizes.
[[nodiscard]] std::vector<PoolChoice> recommendable_choices(const PoolOptions& base);

/// The environment variables that make a program use it, as one would type them:
/// `WEIR_POOL=best_fit WEIR_POOL_SEGMENT_SIZE=256MiB`.
[[nodiscard]] std::string variables_of(const PoolChoice& choice);

/// What makes it, on what `upstream` makes.
[[nodiscard]] Candidate candidate_of(const PoolChoice& choice, const MakeUpstream& upstream,
                                     std::uint64_t lag);

}  // namespace weir::replay
