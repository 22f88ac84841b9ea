#pragma once

// A timeline that was read or is about to be written: processes, their names and their records.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/timeline/record.hpp"

namespace weir::timeline {

/// Of which process a recording is, and when it began.
struct ProcessInfo {
  std::uint32_t pid = 0;
  std::optional<std::uint32_t> rank{};  ///< of a job of several processes
  std::string program{};                ///< its name, for people
  std::string host{};                   ///< the machine's name
  std::string boot{};              ///< tells the machine's monotonic clocks apart; may be empty
  std::uint64_t monotonic_ns = 0;  ///< the recording's zero on the machine's monotonic clock
  std::uint64_t unix_ns = 0;       ///< the same since 1970
};

/// One process's recording. Times are nanoseconds since its zero.
struct Process {
  ProcessInfo info;
  bool complete = false;   ///< it was ended by the program; otherwise the recording was cut
  std::uint64_t lost = 0;  ///< events for which there was no room
  std::vector<std::string> names{{}};   ///< by the records' numbers; the first is empty
  std::vector<TimelineRecord> records;  ///< by `begin`, and alike ones by `sequence`

  [[nodiscard]] std::string_view name(std::uint32_t number) const noexcept {
    return number < names.size() ? std::string_view(names[number]) : std::string_view();
  }
};

struct Timeline {
  std::vector<Process> processes;
};

/// Texts by their numbers, of a recording under way. Thread-safe.
class Names {
 public:
  virtual ~Names() = default;
  /// Valid as long as this.
  [[nodiscard]] virtual std::string_view text(std::uint32_t number) const = 0;
};

/// Where the bytes of a file go. A failure (a full disk) is its own to keep and to tell: what is
/// appended later is dropped.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void append(std::string_view bytes) noexcept = 0;
};

/// One format being written. Not thread-safe. What was flushed can be read, whatever happens next.
class Writer {
 public:
  virtual ~Writer() = default;
  /// Once for each process, first.
  virtual void begin(const ProcessInfo& info) = 0;
  /// Times in nanoseconds since the recording's zero. The records of one call are by `begin`; a
  /// later call may have earlier ones (a slice that took long).
  virtual void write(std::span<const TimelineRecord> records, const Names& names) = 0;
  /// Everything that was written is handed to the sink, in whole events.
  virtual void flush() = 0;
  /// How a process's recording ended.
  enum class End : std::uint8_t {
    kComplete,  ///< by the program
    kCut,       ///< its file ends early
  };
  /// Ends the process that began last, in a file of several. The next call is `begin` or `finish`.
  /// A recorder, which writes one process, leaves this to `finish`.
  virtual void end_process(End end, std::uint64_t lost) {
    (void)end;
    (void)lost;
  }
  /// Once, last. A process that has not ended is complete, but for `lost` events.
  virtual void finish(std::uint64_t lost) = 0;
};

/// What a file's name asks for.
enum class Format : std::uint8_t {
  kChrome,    ///< .json, .json.gz
  kPerfetto,  ///< .pftrace
  kSnapshot,  ///< .pickle: PyTorch's memory viewer; only from a finished recording
};

}  // namespace weir::timeline
