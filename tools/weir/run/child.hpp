#pragma once

// A program in a child process, and the signals meanwhile, which `weir run` forwards. They are
// blocked and waited for, so there is no handler and none is missed.

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

namespace weir::cli {

struct Response {
  bool forward = false;  ///< to the child
  bool stop = false;     ///< stop this process too, like the child

  friend bool operator==(const Response&, const Response&) = default;
};

/// Returns the response to a signal. A terminal sends to the whole group, so the child has it
/// already; another process (`code` not above zero) may have sent it only to this one. Pure.
[[nodiscard]] constexpr Response respond(int signal, int code, pid_t sender, pid_t child) noexcept {
  const bool by_process = code <= 0;
  return {.forward = signal != SIGCHLD && by_process && sender != child,
          .stop = signal == SIGTSTP && sender != child};
}

/// During its lifetime, blocks every signal that would end or stop this process and can be waited
/// for. Not those of faults, nor terminal signals for background jobs, which stop the group.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  [[nodiscard]] const sigset_t& set() const noexcept { return set_; }
  /// In the child: restores the state before, for the program.
  void restore() const noexcept;
  /// Drops signals that are pending.
  void drop_pending() const noexcept;
  /// Stops this process if job control allows it. Returns when continued.
  void stop_self() const noexcept;

 private:
  sigset_t set_{};
  sigset_t before_{};
  struct sigaction child_before_ {};
  struct sigaction pipe_before_ {};
};

/// Ends this process by `signal`, so that its caller sees the program's end. Leaves no core.
/// Returns only if the signal does not end it.
void end_by(int signal) noexcept;

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
