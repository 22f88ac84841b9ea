#pragma once

// The figures of `weir ps`: one row for each program and device. Pure.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "allocator/share/share.hpp"
#include "tools/timeline/live/reader.hpp"

namespace weir::cli {

struct PsProgram {
  std::uint32_t pid = 0;
  std::string user{};                           ///< untrusted text, like the next
  std::string program{};                        ///< its command line
  bool silent = false;                          ///< stopped, or no sample yet
  std::vector<timeline::LiveDevice> devices{};  ///< devices that it has used
};

struct Ps {
  std::vector<PsProgram> programs{};  ///< by process number
  std::size_t unreadable = 0;         ///< programs with another version of Weir
  std::vector<ShareReport> shares{};  ///< shared budgets, each with its processes
};

/// `now_ns` is on the monotonic clock; `user_of` names a user.
[[nodiscard]] Ps ps_of(const timeline::LiveSurvey& survey, std::uint64_t now_ns,
                       const std::function<std::string(std::uint32_t uid)>& user_of);

/// How the table is shown.
struct PsView {
  bool users = false;  ///< with a column of owners
  bool utf8 = false;   ///< the terminal shows it
  bool wide = false;   ///< with all columns, and nothing cut; otherwise at most 100 columns wide
};

/// Returns a table with a line for each program and device, or one line if there is none. Shared
/// budgets follow in a table of their own.
[[nodiscard]] std::string ps_text(const Ps& ps, const PsView& view);

/// Returns the same figures as JSON: a list of programs, each with its devices.
[[nodiscard]] std::string ps_json(const Ps& ps);

/// Returns `GPU 0` for LiveDevice's number, `cpu` for other devices.
[[nodiscard]] std::string device_name(std::uint64_t device);

}  // namespace weir::cli
