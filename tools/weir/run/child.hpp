#pragma once

// A program in a child process.

#include <sys/types.h>

#include <string>
#include <vector>

#include "tools/weir/run/signals.hpp"

namespace weir::cli {

struct Ended {
  int exit_code = 0;
  int signal = 0;  ///< that ended it; zero if it exited
};

class Child {
 public:
  /// Starts it with the signal mask from before `signals`. Throws UsageError if it cannot start.
  Child(const std::string& path, std::vector<std::string> arguments,
        std::vector<std::string> environment, const BlockedSignals& signals);

  [[nodiscard]] pid_t process() const noexcept { return process_; }
  /// Forwards signals until it ends. Drops signals that arrived too late for it: a terminal's
  /// interrupt that ended the program must not also end this process differently.
  [[nodiscard]] Ended wait() const;

 private:
  const BlockedSignals& signals_;
  pid_t process_ = -1;
};

}  // namespace weir::cli
