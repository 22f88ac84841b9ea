#pragma once

// What `weir run` says and advises once a program has ended. Pure.

#include <string>
#include <vector>

#include "allocator/base/log.hpp"
#include "tools/preload/summary/summary.hpp"
#include "tools/weir/run/child.hpp"
#include "tools/weir/run/summary_file.hpp"

namespace weir::cli {

/// Whether memory that was freed, but that the device had not passed, made the device's reserved
/// memory clearly larger.
[[nodiscard]] bool awaiting_matters(const preload::DeviceSummary& device);

/// Returns the most memory that was freed before the device had passed it.
[[nodiscard]] Bytes queued(const preload::DeviceSummary& device);

/// Returns what to try on that device and why, such as `try FLAGS: REASON`; empty if nothing.
[[nodiscard]] std::string advice(const preload::Summary& summary,
                                 const preload::DeviceSummary& device);

/// Says which setting held nothing back, since the program marked no batch; empty if none.
[[nodiscard]] std::string without_effect(const preload::Summary& summary);

struct Remark {
  LogLevel level;
  std::string text;

  friend bool operator==(const Remark&, const Remark&) = default;
};

/// Returns a process's summary: three lines, plus two for each further device, and a line each
/// where freed memory awaited the device and where there is advice. Pure.
[[nodiscard]] std::string brief(const preload::Summary& summary);

/// Returns what to print besides the summaries. `hint` is why a program without a summary could not
/// use CUDA, if that is known. Pure.
[[nodiscard]] std::vector<Remark> remarks(const Ended& ended, const Collected& collected,
                                          const std::string& hint = {});

/// Returns `SIGTERM`, or `signal 42` if it has no name.
[[nodiscard]] std::string signal_name(int signal);

}  // namespace weir::cli
