#pragma once

/// @file
/// What a pool can be told, by code, by flag or by environment variable.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "allocator/base/bytes.hpp"
#include "allocator/base/setting.hpp"
#include "allocator/budget.hpp"

namespace weir {

class AllocationLog;

/// How a request's size becomes a block's, and whether blocks are kept.
enum class PoolKind {
  kUnpooled,  ///< every request straight to the upstream
  kNaive,     ///< exact sizes, rounded to a page
  kRound,     ///< powers of two, linear above a cutoff
  kBestFit,   ///< segments that are split and joined again
  kPaged,     ///< the same over addresses with pages only where something lives
};

/// Which of MXNet's variables apply beside ours: those of its GPU context, or those of its CPU
/// context before them (a `cpu` device stands in for a GPU, so both make sense for it).
enum class MxnetContext {
  kGpu,  ///< MXNET_GPU_* alone
  kCpu,  ///< MXNET_CPU_* first, then MXNET_GPU_*
};

/// Which memory a pool is of, for those who look at several.
struct PoolPlace {
  std::string name = "pool";  ///< for people
  std::uint16_t device = 0;   ///< 1 + the GPU's ordinal; 0: none
  bool host = false;          ///< memory of the host, beside the device's
};

/// Defaults and ranges are MXNet's except for the kind, which is `naive` there.
struct PoolOptions {
  /// `round`, `naive`, `unpooled`, `best_fit` or `paged`.
  Setting<PoolKind> kind = Setting<PoolKind>::by_default(PoolKind::kRound);
  /// Smallest unit of naive and round; at least 32, for round a power of two.
  Setting<Bytes> page = Setting<Bytes>::by_default(kib(4));
  /// naive: results above this are rounded to a multiple of it; above zero.
  Setting<Bytes> large_round = Setting<Bytes>::by_default(mib(2));
  /// round: log2 of where powers of two end; 20 to 34 and at least log2(page).
  Setting<unsigned> cutoff = Setting<unsigned>::by_default(24);
  /// best_fit: what is asked of the upstream at a time, unless a block is larger; at least 2 MiB.
  /// kWholeBudget asks for all the room there is.
  Setting<Bytes> segment = Setting<Bytes>::by_default(mib(64));
  /// best_fit: a segment is at most this part of the budget in force, one of so many, unless a
  /// block is larger; above zero. For a pool that is not alone under its budget.
  std::uint64_t segment_share = 1;
  /// The hard limit, in bytes or as a share of the upstream's capacity.
  Setting<BudgetRequest> budget = Setting<BudgetRequest>::by_default({.percent = 95});
  /// A file to log every allocation and free to; none when empty.
  Setting<std::string> log = Setting<std::string>::by_default({});
  /// How large that file may get; at least a MiB. Later events are lost, and counted.
  Setting<Bytes> log_limit = Setting<Bytes>::by_default(gib(1));

  /// The pool's name and device, for timelines and `weir top`.
  PoolPlace place{};

  /// Larger than any budget.
  static constexpr Bytes kWholeBudget{std::uint64_t{1} << 63U};

  /// Reads ours (WEIR_POOL, WEIR_POOL_PAGE_SIZE, WEIR_POOL_LARGE_ROUND_SIZE,
  /// WEIR_POOL_LINEAR_CUTOFF, WEIR_POOL_SEGMENT_SIZE, WEIR_BUDGET, WEIR_ALLOC_LOG,
  /// WEIR_ALLOC_LOG_LIMIT), then MXNet's; checks nothing across settings. Throws UsageError naming
  /// the variable, the value and what is allowed.
  [[nodiscard]] static PoolOptions from_environment(
      MxnetContext context = MxnetContext::kGpu,
      const Environment& environment = process_environment());

  /// Throws UsageError, naming its source, for a setting outside its range.
  void validate() const;

  /// The process's log to that file, begun by the first call; null when there is to be none.
  /// UsageError when it cannot be written.
  [[nodiscard]] AllocationLog* open_log() const;

  /// How much of `room`, which is what is left of a budget of `limit`, a segment may take that is
  /// larger than its block.
  [[nodiscard]] Bytes segment_room(Bytes room, Bytes limit) const noexcept;

  /// The size of the block that serves a request of `bytes`; nothing for one beyond 2^63.
  [[nodiscard]] std::optional<Bytes> block_size(Bytes bytes) const noexcept;
};

/// `round`, `naive`, `unpooled`, `best_fit` or `paged`, in any case. UsageError otherwise, naming
/// `name`.
[[nodiscard]] PoolKind parse_pool_kind(std::string_view name, std::string_view text);
/// A number of bytes, plain or with a unit, 32 or more. UsageError otherwise.
[[nodiscard]] Bytes parse_page(std::string_view name, std::string_view text);
/// A number of bytes, plain or with a unit, above zero. UsageError otherwise.
[[nodiscard]] Bytes parse_large_round(std::string_view name, std::string_view text);
/// The log2 of a number of bytes, 20 to 34. UsageError otherwise.
[[nodiscard]] unsigned parse_cutoff(std::string_view name, std::string_view text);
/// A number of bytes, plain or with a unit, 2 MiB or more, or `all`, which is kWholeBudget.
/// UsageError otherwise.
[[nodiscard]] Bytes parse_segment(std::string_view name, std::string_view text);
/// As parse_segment reads it.
[[nodiscard]] std::string format_segment(Bytes segment);
/// The name of a file, in which `%p` is the process's number. UsageError when empty.
[[nodiscard]] std::string parse_log(std::string_view name, std::string_view text);
/// A number of bytes, plain or with a unit, at least a MiB. UsageError otherwise.
[[nodiscard]] Bytes parse_log_limit(std::string_view name, std::string_view text);
/// As parse_pool_kind reads it.
[[nodiscard]] std::string_view to_string(PoolKind kind) noexcept;
/// Every kind, in the order in which they are listed to people.
[[nodiscard]] std::span<const PoolKind> pool_kinds() noexcept;

}  // namespace weir
