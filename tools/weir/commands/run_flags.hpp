#pragma once

// The flags of `weir run`. Each stands for a variable that the program then finds set.

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

  /// What was given, checked one by one. UsageError naming the flag.
  [[nodiscard]] std::vector<Variable> variables() const;
  /// --library before WEIR_LIBRARY; empty where neither is set.
  [[nodiscard]] Setting<std::string> library(const Environment& environment) const;
  /// --json before WEIR_SUMMARY, `%p` as it is; empty where neither is set.
  [[nodiscard]] Setting<std::string> json(const Environment& environment) const;
  /// --details: the whole summary is printed.
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
           void (*check)(std::string_view, std::string_view), const char* help);
  [[nodiscard]] static Setting<std::string> path(const Flag& flag, const Environment& environment);

  std::deque<Flag> flags_;  ///< which never moves them: CLI11 points into it
  Flag library_;
  Flag json_;
  bool sync_free_ = false;
  bool details_ = false;
};

/// `environment` with `variables` in it.
[[nodiscard]] Environment overlaid(const Environment& environment,
                                   const std::vector<Variable>& variables);

}  // namespace weir::cli
