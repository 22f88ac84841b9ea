#pragma once

// What `weir run` says when the program has ended.

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

/// A process's summary in three lines, of which each further device has the last two. The last one
/// ends in the advice, where there is some. Pure.
[[nodiscard]] std::string brief(const preload::Summary& summary);
/// What to try on that device, as flags and why; empty where there is nothing to try. Pure.
[[nodiscard]] std::string advice(const preload::DeviceSummary& device, std::string_view pool);

/// What there is to say besides the summaries. Pure.
[[nodiscard]] std::vector<Remark> remarks(const Ended& ended, const Collected& collected);

/// `SIGTERM`, or `signal 42` where it has no name.
[[nodiscard]] std::string signal_name(int signal);

}  // namespace weir::cli
