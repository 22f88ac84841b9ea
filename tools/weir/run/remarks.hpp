#pragma once

// What `weir run` prints once the program has ended.

#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/log.hpp"
#include "tools/weir/run/child.hpp"
#include "tools/weir/run/summary_file.hpp"

namespace weir::cli {

struct Remark {
  LogLevel level;
  std::string text;

  friend bool operator==(const Remark&, const Remark&) = default;
};

/// Returns a process's summary in three lines, plus two for each further device. The last line ends
/// with advice, if any. Pure.
[[nodiscard]] std::string brief(const preload::Summary& summary);
/// Returns flags to try on that device, and why; empty if none. Pure.
[[nodiscard]] std::string advice(const preload::DeviceSummary& device, std::string_view pool);

/// Returns what to print besides the summaries. Pure.
[[nodiscard]] std::vector<Remark> remarks(const Ended& ended, const Collected& collected);

/// Returns `SIGTERM`, or `signal 42` if it has no name.
[[nodiscard]] std::string signal_name(int signal);

}  // namespace weir::cli
