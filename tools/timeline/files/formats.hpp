#pragma once

// The table of timeline file formats. A new format adds a folder beside this one and an entry to
// the table. Recording, reading, writing, error messages and help texts follow from the table.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

struct FileFormat {
  std::string_view name;                       ///< for people, in the plural
  std::span<const std::string_view> suffixes;  ///< of file names; `.gz` at the end: compressed
  /// Returns whether a file that begins so has this format, whoever wrote it.
  bool (*recognises)(std::string_view front);
  /// Returns whether Weir wrote it, so that a recording may replace it. Null if no recording can
  /// have this format.
  bool (*recognises_ours)(std::string_view front);
  /// Returns a writer for recordings. Null if only a finished timeline can have this format.
  std::unique_ptr<Writer> (*make_writer)(ByteSink& sink);
  /// Returns the file of a finished timeline. Null if `make_writer` writes it.
  std::string (*whole)(const Timeline& timeline);
  /// Reads a file. Null if Weir does not read this format.
  Timeline (*read)(const std::string& path, const ReadLimits& limits);
  std::string_view why_not_read;  ///< for an error message, if `read` is null
};

/// Every format.
[[nodiscard]] std::span<const FileFormat> file_formats() noexcept;

enum class FormatUse : std::uint8_t {
  kRecord,  ///< while the program runs
  kWrite,   ///< a finished timeline
  kRead,
};
[[nodiscard]] bool allows(const FileFormat& format, FormatUse use) noexcept;

/// A format, and the suffix by which a file's name selects it.
struct NamedFormat {
  const FileFormat* format;
  std::string_view suffix;

  [[nodiscard]] bool packed() const noexcept { return suffix.ends_with(".gz"); }
};

/// Returns nothing if the name has no suffix of a format that allows `use`.
[[nodiscard]] std::optional<NamedFormat> find_format(std::string_view path, FormatUse use) noexcept;
/// The same, but throws UsageError naming `option`.
[[nodiscard]] NamedFormat require_format(std::string_view option, std::string_view path,
                                         FormatUse use);

/// Lists the suffixes for people: `.json, .json.gz or .pftrace`.
[[nodiscard]] std::string list_suffixes(FormatUse use);
/// Lists the formats for people: `Chrome trace JSON (.json, .json.gz) and Perfetto traces
/// (.pftrace)`. `last` is the word before the last one.
[[nodiscard]] std::string list_formats(FormatUse use, std::string_view last);

/// Reads a timeline file and detects the format from its first bytes, not from its name. Throws
/// UsageError of one line if it is none: a folder, an empty file, standard input (`-`), an
/// allocation log.
[[nodiscard]] Timeline read_timeline(const std::string& path);
[[nodiscard]] Timeline read_timeline(const std::string& path, const ReadLimits& limits);

/// The names of a process that was read. Refers to that process.
class ProcessNames final : public Names {
 public:
  explicit ProcessNames(const Process& process) : process_(process) {}
  [[nodiscard]] std::string_view text(std::uint32_t number) const override {
    return process_.name(number);
  }

 private:
  const Process& process_;
};

/// Writes all processes and ends the file.
void write_timeline(const Timeline& timeline, Writer& writer);
/// Writes a file's bytes, compressed if the suffix says so.
void write_timeline(const Timeline& timeline, const NamedFormat& as, ByteSink& sink);

/// Puts all processes on one clock, whose zero is the earliest one. Sorts them by rank, host and
/// pid. Aligns recordings of one machine by its monotonic clock, others by the time of day. A
/// recording without either starts with the earliest one, and a kNote record says so. Throws
/// UsageError if two recordings are the same or more than a year apart.
[[nodiscard]] Timeline merge(std::vector<Timeline> timelines);

}  // namespace weir::timeline
