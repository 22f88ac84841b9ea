#pragma once

// The flags of `weir run`. Each one sets a variable in the program's environment.

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/program/command_line.hpp"
#include "tools/weir/run/framework_allocator.hpp"
#include "tools/weir/run/summary_file.hpp"

namespace weir::cli {

class RunFlags {
 public:
  /// Adds them to `line`, which must outlive it.
  explicit RunFlags(CommandLine& line);
  RunFlags(const RunFlags&) = delete;
  RunFlags& operator=(const RunFlags&) = delete;

  /// Returns the given flags as variables, each checked. Throws UsageError with the flag.
  [[nodiscard]] std::vector<Variable> variables() const;
  /// Returns which given flag sets which of the variables.
  [[nodiscard]] FlagSources sources() const;
  /// --library, else WEIR_LIBRARY, else empty.
  [[nodiscard]] Setting<std::string> library(const Environment& environment) const;
  /// --json, else WEIR_SUMMARY, else empty. Keeps `%p`.
  [[nodiscard]] Setting<std::string> json(const Environment& environment) const;
  /// --details: print the whole summary.
  [[nodiscard]] bool details() const noexcept { return details_; }

 private:
  using Check = void (*)(std::string_view name, std::string_view text);
  struct VariableFlag {
    VariableFlag(CommandLine& line, const char* of_flag, const char* of_variable, Check checked_by,
                 const Value& value, const std::string& help)
        : name(of_flag),
          variable(of_variable),
          check(checked_by),
          flag(line.add(of_flag, text, value, help).over(of_variable)) {}
    const char* name;
    const char* variable;
    Check check;  ///< null: not a variable of the program's
    std::string text;
    Flag flag;
  };

  [[nodiscard]] static Setting<std::string> path(const VariableFlag& flag,
                                                 const Environment& environment);

  std::deque<VariableFlag> flags_;  ///< a deque never moves them, and the line reads into them
  const VariableFlag* json_;
  const VariableFlag* library_;
  bool sync_free_ = false;
  bool details_ = false;
};

/// Returns `environment` with `variables` set.
[[nodiscard]] Environment overlaid(const Environment& environment,
                                   const std::vector<Variable>& variables);

}  // namespace weir::cli
