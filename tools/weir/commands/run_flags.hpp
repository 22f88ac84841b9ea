#pragma once

// The flags of `weir run`. Each one sets a variable in the program's environment.

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/weir/run/variable.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
class Option;
}  // namespace CLI

namespace weir::cli {

class RunFlags {
 public:
  /// Adds them to `app`, which must outlive it.
  explicit RunFlags(CLI::App& app);
  RunFlags(const RunFlags&) = delete;
  RunFlags& operator=(const RunFlags&) = delete;

  /// Returns the given flags as variables, each checked. Throws UsageError with the flag.
  [[nodiscard]] std::vector<Variable> variables() const;
  /// --library, else WEIR_LIBRARY, else empty.
  [[nodiscard]] Setting<std::string> library(const Environment& environment) const;
  /// --json, else WEIR_SUMMARY, else empty. Keeps `%p`.
  [[nodiscard]] Setting<std::string> json(const Environment& environment) const;
  /// --details: print the whole summary.
  [[nodiscard]] bool details() const noexcept { return details_; }

 private:
  struct Flag {
    const char* name;
    const char* variable;
    void (*check)(std::string_view name, std::string_view text);
    std::string text;
    CLI::Option* option;
  };

  void add(CLI::App& app, const char* name, const char* variable,
           void (*check)(std::string_view, std::string_view), const std::string& help);
  [[nodiscard]] static Setting<std::string> path(const Flag& flag, const Environment& environment);

  std::deque<Flag> flags_;  ///< a deque never moves them, and CLI11 points into it
  Flag library_;
  Flag json_;
  bool sync_free_ = false;
  bool details_ = false;
};

/// Returns `environment` with `variables` set.
[[nodiscard]] Environment overlaid(const Environment& environment,
                                   const std::vector<Variable>& variables);

}  // namespace weir::cli
