#pragma once

// The settings of a recording, from code, flags or environment variables.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "allocator/base/bytes.hpp"
#include "allocator/base/setting.hpp"
#include "tools/timeline/files/formats.hpp"

namespace weir::timeline {

/// A range of batch numbers, as in Python: from `first` to before `end`.
struct BatchRange {
  std::uint32_t first = 0;
  std::uint32_t end = UINT32_MAX;

  [[nodiscard]] bool contains(std::uint32_t batch) const noexcept {
    return batch >= first && batch < end;
  }
  friend bool operator==(const BatchRange&, const BatchRange&) = default;
};

struct TimelineSettings {
  /// The file name, expanded by expand_name. Empty: no recording.
  Setting<std::string> file = Setting<std::string>::by_default({});
  /// The batches to record; all unless set.
  Setting<std::optional<BatchRange>> batches = Setting<std::optional<BatchRange>>::by_default({});
  /// Memory for events that are not yet written, at least 1 MiB. Events beyond it are dropped and
  /// counted.
  Setting<Bytes> buffer = Setting<Bytes>::by_default(mib(64));

  /// Reads WEIR_TIMELINE, WEIR_TIMELINE_BATCHES and WEIR_TIMELINE_BUFFER. Throws UsageError naming
  /// the variable, the value and what is allowed.
  [[nodiscard]] static TimelineSettings from_environment(
      const Environment& environment = process_environment());
};

/// Returns the format for a file name's suffix. Throws UsageError naming `name` if no recording can
/// have it.
[[nodiscard]] NamedFormat parse_format(std::string_view name, std::string_view text);
/// Returns the file name if parse_format accepts it.
[[nodiscard]] std::string parse_timeline_file(std::string_view name, std::string_view text);
/// Parses `10:20` (batches 10 to 19); either number may be omitted. Throws UsageError otherwise.
[[nodiscard]] std::optional<BatchRange> parse_batch_range(std::string_view name,
                                                          std::string_view text);
/// Parses a number of bytes, plain or with a unit, at least 1 MiB. Throws UsageError otherwise.
[[nodiscard]] Bytes parse_timeline_buffer(std::string_view name, std::string_view text);

/// Returns this process's rank in its job, from the first of these variables that is set: RANK,
/// OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID, LOCAL_RANK.
[[nodiscard]] std::optional<std::uint32_t> find_rank(const Environment& environment);
/// Returns the file's name with `%p` replaced by the process's number, `%r` by its rank and `%%` by
/// `%`. Throws UsageError if it needs a rank and there is none.
[[nodiscard]] std::string expand_name(const Setting<std::string>& file,
                                      const Environment& environment);
/// Returns a name that expand_name turns into `path`.
[[nodiscard]] std::string name_of_path(std::string_view path);

}  // namespace weir::timeline
