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

/// Whether the variables ask for UTF-8: the first that is set of LC_ALL, LC_CTYPE and LANG.
[[nodiscard]] bool asks_for_utf8(const Environment& environment);

/// Whether standard output is a terminal that can be drawn on again.
[[nodiscard]] bool can_draw(const Environment& environment);

/// Columns and lines of standard output. Where it is no terminal: COLUMNS, or wide enough for all,
/// and any number of lines.
[[nodiscard]] Screen screen_of(const Environment& environment);

/// Another screen than the shell's, without a cursor and without echo, until its end. Signals that
/// would end or stop the process are waited for instead. One at a time.
class TopTerminal {
 public:
  TopTerminal();
  ~TopTerminal();
  TopTerminal(const TopTerminal&) = delete;
  TopTerminal& operator=(const TopTerminal&) = delete;

  /// In place of what was there. False where the terminal is gone.
  [[nodiscard]] bool draw(std::string_view text);

  struct Event {
    enum class Kind : std::uint8_t {
      kTime,    ///< nothing happened for so long
      kRedraw,  ///< another size, or it was stopped and goes on
      kQuit,    ///< q, Ctrl-C, or the terminal is gone
      kSignal,  ///< another wants the process to end
    };
    Kind kind;
    int signal = 0;
  };
  [[nodiscard]] Event wait(std::chrono::milliseconds longest);

 private:
  void enter();
  void leave() noexcept;
  /// As a shell's job: stops, with the shell's screen, until it is told to go on.
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
