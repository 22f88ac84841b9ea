#pragma once

// The figures of `weir top`: one row for each program that publishes. Pure.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/timeline/live/reader.hpp"

namespace weir::cli {

struct TopRow {
  std::uint32_t pid = 0;
  std::string user{};     ///< untrusted text, like the next two
  std::string program{};  ///< its command line
  std::vector<std::string> devices{};
  timeline::LiveSample last{};             ///< the newest; all zero if none
  timeline::LiveRates rates{};             ///< none if the program is silent
  bool silent = false;                     ///< stopped, or no sample yet
  std::vector<std::uint64_t> allocated{};  ///< of each sample, oldest first
};

struct Top {
  std::vector<TopRow> rows{};  ///< most reserved first
  std::size_t unreadable = 0;  ///< programs with another version of Weir
};

/// Whether the program is stopped or has taken no sample yet. `now_ns` is on the monotonic clock.
[[nodiscard]] bool is_silent(const timeline::LiveProgram& program, std::uint64_t now_ns) noexcept;

/// `now_ns` is on the monotonic clock; `user_of` names a user.
[[nodiscard]] Top top_of(const timeline::LiveSurvey& survey, std::uint64_t now_ns,
                         const std::function<std::string(std::uint32_t uid)>& user_of);

/// Returns the same figures as JSON. Unknown values are null.
[[nodiscard]] std::string top_json(const Top& top);

}  // namespace weir::cli
