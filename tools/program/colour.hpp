#pragma once

// Colour on terminals. Never the only sign of anything: the words say it too.

#include <unistd.h>

#include <string>
#include <string_view>

#include "allocator/base/setting.hpp"

namespace weir {

enum class Colour { kNone, kRed, kGreen, kYellow, kBold };

/// Whether text for people may be coloured: on a terminal, unless NO_COLOR is set and not empty
/// (https://no-color.org) or TERM is empty or `dumb`. Pure.
[[nodiscard]] inline bool may_colour(bool is_terminal, const Environment& environment) {
  const auto value = [&](const char* name) {
    const char* const text = environment(name);
    return std::string_view(text != nullptr ? text : "");
  };
  const std::string_view terminal = value("TERM");
  return is_terminal && value("NO_COLOR").empty() && !terminal.empty() && terminal != "dumb";
}

/// The same for standard output of this process.
[[nodiscard]] inline bool may_colour_output(const Environment& environment) {
  return may_colour(isatty(STDOUT_FILENO) != 0, environment);
}

/// Returns `text` in this colour; unchanged without one.
[[nodiscard]] inline std::string coloured(std::string_view text, Colour colour) {
  const auto in = [text](const char* code) {
    return std::string("\x1b[").append(code).append("m").append(text).append("\x1b[0m");
  };
  switch (colour) {
    case Colour::kRed:
      return in("31");
    case Colour::kGreen:
      return in("32");
    case Colour::kYellow:
      return in("33");
    case Colour::kBold:
      return in("1");
    case Colour::kNone:
      break;
  }
  return std::string(text);
}

}  // namespace weir
