#pragma once

// The terminal that `weir top` draws on.

#include <termios.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <string_view>

#include "allocator/base/setting.hpp"
#include "tools/weir/live/top_screen.hpp"

namespace weir::cli {

/// Whether the first set variable of LC_ALL, LC_CTYPE and LANG asks for UTF-8.
[[nodiscard]] bool asks_for_utf8(const Environment& environment);

/// Whether standard output is a terminal that can be redrawn.
[[nodiscard]] bool can_draw(const Environment& environment);

/// Returns columns and lines of standard output. If it is no terminal: COLUMNS, or 100, and any
/// number of lines.
[[nodiscard]] Screen screen_of(const Environment& environment);

/// Switches to the alternate screen, without cursor and echo, during its lifetime. Signals that
/// would end or stop the process are blocked and waited for. One instance at a time.
class TopTerminal {
 public:
  TopTerminal();
  ~TopTerminal();
  TopTerminal(const TopTerminal&) = delete;
  TopTerminal& operator=(const TopTerminal&) = delete;

  /// Replaces the screen's text. Returns false if the terminal is gone.
  [[nodiscard]] bool draw(std::string_view text);

  struct Event {
    enum class Kind : std::uint8_t {
      kTime,    ///< nothing happened for the given time
      kRedraw,  ///< resized, or continued after a stop
      kQuit,    ///< q, Ctrl-C, or no terminal any more
      kSignal,  ///< another signal asks the process to end
    };
    Kind kind;
    int signal = 0;
  };
  [[nodiscard]] Event wait(std::chrono::milliseconds longest);

 private:
  void enter();
  void leave() noexcept;
  /// Stops as a shell's job, on the shell's screen, until continued.
  void stop();
  [[nodiscard]] Event take_signal();
  [[nodiscard]] Event take_key() const;

  sigset_t taken_{};
  sigset_t before_{};
  termios settings_{};  ///< the shell's
  const bool has_keys_;
  int signals_ = -1;
};

}  // namespace weir::cli
