#pragma once

// What a recording can be told, by code, by flag or by environment variable.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "allocator/base/bytes.hpp"
#include "allocator/base/setting.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Numbers of batches, as Python's ranges have them: from `first`, and before `end`.
struct BatchRange {
  std::uint32_t first = 0;
  std::uint32_t end = UINT32_MAX;

  [[nodiscard]] bool contains(std::uint32_t batch) const noexcept {
    return batch >= first && batch < end;
  }
  friend bool operator==(const BatchRange&, const BatchRange&) = default;
};

struct TimelineSettings {
  /// Names the file: see expand_name. None when empty.
  Setting<std::string> file = Setting<std::string>::by_default({});
  /// The batches that are recorded; everything unless it is set.
  Setting<std::optional<BatchRange>> batches = Setting<std::optional<BatchRange>>::by_default({});
  /// Memory for events that are not yet written; at least a MiB. Events past it are lost, and
  /// counted.
  Setting<Bytes> buffer = Setting<Bytes>::by_default(mib(64));

  /// Reads WEIR_TIMELINE, WEIR_TIMELINE_BATCHES and WEIR_TIMELINE_BUFFER. Throws UsageError naming
  /// the variable, the value and what is allowed.
  [[nodiscard]] static TimelineSettings from_environment(
      const Environment& environment = process_environment());
};

/// A name that ends in .json, .json.gz or .pftrace. UsageError otherwise, naming `name`.
[[nodiscard]] std::string parse_timeline_file(std::string_view name, std::string_view text);
/// `10:20` is batches 10 to 19; either number may be left out. UsageError otherwise.
[[nodiscard]] std::optional<BatchRange> parse_batch_range(std::string_view name,
                                                          std::string_view text);
/// A number of bytes, plain or with a unit, at least a MiB. UsageError otherwise.
[[nodiscard]] Bytes parse_timeline_buffer(std::string_view name, std::string_view text);

/// What the end of a file's name asks for; none for any other.
[[nodiscard]] std::optional<Format> format_of_name(std::string_view path) noexcept;

/// The number of this process in its job, from the variables that launchers set: RANK,
/// OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID, LOCAL_RANK, the first that is set.
[[nodiscard]] std::optional<std::uint32_t> find_rank(const Environment& environment);
/// The file's name with `%p` replaced by the process's number, `%r` by its rank and `%%` by `%`.
/// UsageError where it needs a rank and there is none.
[[nodiscard]] std::string expand_name(const Setting<std::string>& file,
                                      const Environment& environment);
/// The name that expand_name makes `path` of.
[[nodiscard]] std::string name_of_path(std::string_view path);

}  // namespace weir::timeline
