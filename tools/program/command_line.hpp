#pragma once

// What the command lines of all programs have in common, beside CLI11.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <string>

#include "allocator/base/setting.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir {

/// Prints what --help and --version ask for. Throws Error where it cannot be printed.
[[nodiscard]] inline int print_help(const CLI::App& app, const CLI::Success& asked) {
  std::ostringstream text;
  const int code = app.exit(asked, text, text);
  require_printed(print(text.str()));
  return code;
}

/// UsageError for a flag of `app`, or of the subcommand that was named, whose value is empty.
inline void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    if (!std::ranges::count(option->results(), std::string())) continue;
    refuse(option->get_name(), "", "a value, or the flag left out");
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->parsed()) refuse_empty_values(*command);
  }
}

}  // namespace weir
