#pragma once

// A timeline that was read or will be written: processes, their names and their records.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/timeline/record.hpp"

namespace weir::timeline {

/// The process of a recording, and the recording's begin.
struct ProcessInfo {
  std::uint32_t pid = 0;
  std::optional<std::uint32_t> rank{};  ///< in a job of several processes
  std::string program{};                ///< the program's name, for people
  std::string host{};                   ///< the machine's name
  std::string boot{};  ///< identifies one boot of the machine, hence one monotonic clock; may be
                       ///< empty
  std::uint64_t monotonic_ns = 0;  ///< the recording's zero on the machine's monotonic clock
  std::uint64_t unix_ns = 0;       ///< the same in nanoseconds since 1970
};

/// One process's recording. Times are nanoseconds since its zero.
struct Process {
  ProcessInfo info;
  bool complete = false;   ///< the program ended the recording; otherwise it was truncated
  std::uint64_t lost = 0;  ///< events dropped for lack of room
  std::vector<std::string> names{{}};  ///< indexed by the records' name numbers; the first is empty
  std::vector<TimelineRecord> records;  ///< by `begin`, then by `sequence`

  [[nodiscard]] std::string_view name(std::uint32_t number) const noexcept {
    return number < names.size() ? std::string_view(names[number]) : std::string_view();
  }
};

struct Timeline {
  std::vector<Process> processes;
};

/// Texts by number, during a recording. Thread-safe.
class Names {
 public:
  virtual ~Names() = default;
  /// The text is valid as long as this.
  [[nodiscard]] virtual std::string_view text(std::uint32_t number) const = 0;
};

/// Receives a file's bytes. Keeps and reports its own failures (a full disk); then it drops later
/// bytes.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void append(std::string_view bytes) noexcept = 0;
};

/// Writes one format. Not thread-safe. What was flushed can be read, whatever happens next.
class Writer {
 public:
  virtual ~Writer() = default;
  /// Call first for each process.
  virtual void begin(const ProcessInfo& info) = 0;
  /// Times are nanoseconds since the recording's zero. The records of one call are sorted by
  /// `begin`; a later call may have earlier ones (slices that took long).
  virtual void write(std::span<const TimelineRecord> records, const Names& names) = 0;
  /// Passes everything written to the sink, as complete events.
  virtual void flush() = 0;
  /// How a process's recording ended.
  enum class End : std::uint8_t {
    kComplete,  ///< by the program
    kCut,       ///< the file was truncated
  };
  /// Ends the last process, in a file of several. The next call is `begin` or `finish`. A recorder
  /// writes one process and only calls `finish`.
  virtual void end_process(End end, std::uint64_t lost) {
    (void)end;
    (void)lost;
  }
  /// Call once, last. Also ends an open process as complete, with `lost` lost events.
  virtual void finish(std::uint64_t lost) = 0;
};

// Limits for reading an untrusted file.

/// A file that exceeds a limit is refused with a UsageError of one line.
struct ReadLimits {
  std::uint64_t max_records = 50'000'000;
  std::size_t max_processes = 4096;
  std::size_t max_names = 1U << 22U;          ///< per process
  std::uint64_t max_name_bytes = 1ULL << 30;  ///< per process, all names together
  std::size_t max_string = 1U << 20U;         ///< bytes of one text
  std::size_t max_depth = 64;                 ///< nesting of objects and arrays
  std::uint64_t max_bytes = 1ULL << 37;       ///< of the file, unpacked
};

/// Rounds `value`, from 0 to 2^62, to the nearest whole number; halves round up. Replaces
/// std::llround, because libweir.so must not need the math library.
[[nodiscard]] constexpr std::uint64_t nearest(double value) noexcept {
  return static_cast<std::uint64_t>(2 * value + 1) / 2;
}

}  // namespace weir::timeline
