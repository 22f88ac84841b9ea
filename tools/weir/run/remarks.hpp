#pragma once

// What `weir run` prints once the program has ended.

#include <string>
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
