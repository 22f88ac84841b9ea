#pragma once

// A program in a child process.

#include <sys/types.h>

#include <string>
#include <vector>

#include "tools/weir/run/signals.hpp"

namespace weir::cli {

struct Ended {
  int exit_code = 0;
  int signal = 0;  ///< that ended it; zero where it ended by itself
};

class Child {
 public:
  /// Starts it with the signals as they were before `signals`. UsageError where it cannot be.
  Child(const std::string& path, std::vector<std::string> arguments,
        std::vector<std::string> environment, const BlockedSignals& signals);

  [[nodiscard]] pid_t process() const noexcept { return process_; }
  /// Hands signals on until it ends. Those that came too late for it are forgotten: a terminal's
  /// interrupt, which the program ended of, must not end this process in another way.
  [[nodiscard]] Ended wait() const;

 private:
  const BlockedSignals& signals_;
  pid_t process_ = -1;
};

}  // namespace weir::cli
