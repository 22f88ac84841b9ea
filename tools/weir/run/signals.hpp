#pragma once

// Signals while a program runs in a child: `weir run` stands between it and whoever sends them.
// They are blocked and waited for, so there is no handler, and none is missed.

#include <sys/types.h>

#include <csignal>

namespace weir::cli {

struct Response {
  bool forward = false;  ///< to the child
  bool stop = false;     ///< this process, as the child is

  friend bool operator==(const Response&, const Response&) = default;
};

/// What is done about a signal. A terminal sends to the whole group, so the child has it already;
/// another process (`code` is not above zero) sent it to this one, perhaps alone. Pure.
[[nodiscard]] constexpr Response respond(int signal, int code, pid_t sender, pid_t child) noexcept {
  const bool by_process = code <= 0;
  return {.forward = signal != SIGCHLD && by_process && sender != child,
          .stop = signal == SIGTSTP && sender != child};
}

/// Blocks, as long as it lives, every signal that would end or stop this process and can be waited
/// for. Not those of a fault, nor those of terminals for background jobs, which stop the group.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  [[nodiscard]] const sigset_t& set() const noexcept { return set_; }
  /// In the child: all as it was before, for the program.
  void restore() const noexcept;
  /// Forgets what was sent and not yet waited for.
  void drop_pending() const noexcept;
  /// Stops this process, if stopping it is in order, and returns when it goes on.
  void stop_self() const noexcept;

 private:
  sigset_t set_{};
  sigset_t before_{};
  struct sigaction child_before_ {};
  struct sigaction pipe_before_ {};
};

/// Ends this process by `signal`, as a program was: whoever waits for it sees the same. Leaves no
/// core. Returns only where the signal does not end it.
void end_by(int signal) noexcept;

}  // namespace weir::cli
