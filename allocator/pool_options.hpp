#pragma once

/// @file
/// A pool's settings, from code, flags or environment variables.

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

/// How a request's size becomes a block size, and whether blocks are kept.
enum class PoolKind {
  kUnpooled,  ///< every request goes to the upstream
  kNaive,     ///< exact sizes, rounded to a page
  kRound,     ///< powers of two, linear above a cutoff
  kBestFit,   ///< segments that are split and merged
  kPaged,     ///< the same over addresses, with pages only under live blocks
};

/// Which of MXNet's variables apply beside ours. A `cpu` device stands in for a GPU, so it reads
/// both contexts' variables.
enum class MxnetContext {
  kGpu,  ///< MXNET_GPU_* alone
  kCpu,  ///< MXNET_CPU_* first, then MXNET_GPU_*
};

/// Which memory a pool manages, for tools that show several.
struct PoolPlace {
  std::string name = "pool";  ///< shown to people
  std::uint16_t device = 0;   ///< 1 + the GPU's ordinal, or 0 for no GPU
  bool host = false;          ///< host memory used beside the device's
};

/// Defaults and ranges are MXNet's, except that MXNet's default kind is `naive`.
struct PoolOptions {
  /// `round`, `naive`, `unpooled`, `best_fit` or `paged`.
  Setting<PoolKind> kind = Setting<PoolKind>::by_default(PoolKind::kRound);
  /// naive, round: smallest unit; at least 32, and a power of two for round.
  Setting<Bytes> page = Setting<Bytes>::by_default(kib(4));
  /// naive: sizes above this are rounded to a multiple of it; above zero.
  Setting<Bytes> large_round = Setting<Bytes>::by_default(mib(2));
  /// round: log2 of the size where powers of two end; 20 to 34 and at least log2(page).
  Setting<unsigned> cutoff = Setting<unsigned>::by_default(24);
  /// best_fit: bytes requested from the upstream at a time, unless a block is larger; at least 2
  /// MiB. kWholeBudget requests all the room.
  Setting<Bytes> segment = Setting<Bytes>::by_default(mib(64));
  /// best_fit: a segment takes at most 1/`segment_share` of the budget, unless a block is larger;
  /// above zero. For pools that share a budget.
  std::uint64_t segment_share = 1;
  /// The hard limit, in bytes or as a share of the upstream's capacity.
  Setting<BudgetRequest> budget = Setting<BudgetRequest>::by_default({.percent = 95});
  /// The file to log every allocation and free to; empty for none.
  Setting<std::string> log = Setting<std::string>::by_default({});
  /// The largest size of that file; at least a MiB. Later events are lost and counted.
  Setting<Bytes> log_limit = Setting<Bytes>::by_default(gib(1));

  /// The pool's name and device, for timelines and `weir top`.
  PoolPlace place{};

  /// Larger than any budget.
  static constexpr Bytes kWholeBudget{std::uint64_t{1} << 63U};

  /// Reads ours (WEIR_POOL, WEIR_POOL_PAGE_SIZE, WEIR_POOL_LARGE_ROUND_SIZE,
  /// WEIR_POOL_LINEAR_CUTOFF, WEIR_POOL_SEGMENT_SIZE, WEIR_BUDGET, WEIR_ALLOC_LOG,
  /// WEIR_ALLOC_LOG_LIMIT), then MXNet's. Checks each setting alone. Throws UsageError with the
  /// variable, the value and what is allowed.
  [[nodiscard]] static PoolOptions from_environment(
      MxnetContext context = MxnetContext::kGpu,
      const Environment& environment = process_environment());

  /// Throws UsageError with the source of a setting outside its range.
  void validate() const;

  /// Returns the process's log to that file, made by the first call; null if `log` is empty. Throws
  /// UsageError if it cannot be written.
  [[nodiscard]] AllocationLog* open_log() const;

  /// Returns how much of `room`, the rest of a budget of `limit`, a segment larger than its block
  /// may take.
  [[nodiscard]] Bytes segment_room(Bytes room, Bytes limit) const noexcept;

  /// Returns the block size for a request of `bytes`, or nullopt beyond 2^63.
  [[nodiscard]] std::optional<Bytes> block_size(Bytes bytes) const noexcept;
};

/// Parses `round`, `naive`, `unpooled`, `best_fit` or `paged`, in any case. Throws UsageError with
/// `name` otherwise.
[[nodiscard]] PoolKind parse_pool_kind(std::string_view name, std::string_view text);
/// Parses bytes, plain or with a unit, 32 or more. Throws UsageError otherwise.
[[nodiscard]] Bytes parse_page(std::string_view name, std::string_view text);
/// Parses bytes, plain or with a unit, above zero. Throws UsageError otherwise.
[[nodiscard]] Bytes parse_large_round(std::string_view name, std::string_view text);
/// Parses the log2 of a size, 20 to 34. Throws UsageError otherwise.
[[nodiscard]] unsigned parse_cutoff(std::string_view name, std::string_view text);
/// Parses bytes, plain or with a unit, 2 MiB or more, or `all` for kWholeBudget. Throws UsageError
/// otherwise.
[[nodiscard]] Bytes parse_segment(std::string_view name, std::string_view text);
/// Formats a size so that parse_segment reads it.
[[nodiscard]] std::string format_segment(Bytes segment);
/// Parses a file name, in which `%p` is the process id. Throws UsageError if empty.
[[nodiscard]] std::string parse_log(std::string_view name, std::string_view text);
/// Parses bytes, plain or with a unit, at least a MiB. Throws UsageError otherwise.
[[nodiscard]] Bytes parse_log_limit(std::string_view name, std::string_view text);
/// Returns the name that parse_pool_kind reads.
[[nodiscard]] std::string_view to_string(PoolKind kind) noexcept;
/// Returns every kind, in the order shown to people.
[[nodiscard]] std::span<const PoolKind> pool_kinds() noexcept;

}  // namespace weir
