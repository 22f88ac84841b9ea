#pragma once

// What `weir run` says when the program has ended.

#include <string>
#include <vector>

#include "allocator/log.hpp"
#include "tools/weir/child.hpp"
#include "tools/weir/summary_file.hpp"

namespace weir::cli {

struct Remark {
  LogLevel level;
  std::string text;

  friend bool operator==(const Remark&, const Remark&) = default;
};

/// What there is to say besides the summaries. Pure.
[[nodiscard]] std::vector<Remark> remarks(const Ended& ended, const Collected& collected);

/// `SIGTERM`, or `signal 42` where it has no name.
[[nodiscard]] std::string signal_name(int signal);

}  // namespace weir::cli
