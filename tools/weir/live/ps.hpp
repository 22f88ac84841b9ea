#pragma once

// The figures of `weir ps`: one row for each program and device. Pure.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/timeline/live/reader.hpp"

namespace weir::cli {

struct PsProgram {
  std::uint32_t pid = 0;
  std::string user{};                           ///< a stranger's text, as the next
  std::string program{};                        ///< its command line
  bool silent = false;                          ///< it is stopped, or has taken no sample yet
  std::vector<timeline::LiveDevice> devices{};  ///< that it has used
};

struct Ps {
  std::vector<PsProgram> programs{};  ///< by number of the process
  std::size_t unreadable = 0;         ///< programs with another version of Weir
};

/// `now_ns` is of the monotonic clock; `user_of` names a user.
[[nodiscard]] Ps ps_of(const timeline::LiveSurvey& survey, std::uint64_t now_ns,
                       const std::function<std::string(std::uint32_t uid)>& user_of);

/// A heading and a line for each program and device; one line where there is none. `users`: with a
/// column that says whose they are. `utf8`: the terminal shows it.
[[nodiscard]] std::string ps_text(const Ps& ps, bool users, bool utf8);

/// The same figures for a program: a list of programs, each with its devices.
[[nodiscard]] std::string ps_json(const Ps& ps);

/// `GPU 0`, by LiveDevice's number; `cpu` for what is no GPU.
[[nodiscard]] std::string device_name(std::uint64_t device);

}  // namespace weir::cli
