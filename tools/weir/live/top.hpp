#pragma once

// The figures of `weir top`: one row for each program that publishes. Pure.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/timeline/live/rates.hpp"
#include "tools/timeline/live/reader.hpp"

namespace weir::cli {

struct TopRow {
  std::uint32_t pid = 0;
  std::string user{};     ///< a stranger's text, as the next two
  std::string program{};  ///< its command line
  std::vector<std::string> devices{};
  timeline::LiveSample last{};             ///< the newest; all zero where there is none
  timeline::LiveRates rates{};             ///< nothing where the program is silent
  bool silent = false;                     ///< it is stopped, or has taken no sample yet
  std::vector<std::uint64_t> allocated{};  ///< of each sample, oldest first
};

struct Top {
  std::vector<TopRow> rows{};  ///< the most reserved first
  std::size_t unreadable = 0;  ///< programs with another version of Weir
};

/// Whether the program is stopped, or has taken no sample yet. `now_ns` is of the monotonic clock.
[[nodiscard]] bool is_silent(const timeline::LiveProgram& program, std::uint64_t now_ns) noexcept;

/// `now_ns` is of the monotonic clock; `user_of` names a user.
[[nodiscard]] Top top_of(const timeline::LiveSurvey& survey, std::uint64_t now_ns,
                         const std::function<std::string(std::uint32_t uid)>& user_of);

/// The same figures for a program. What is not known is null.
[[nodiscard]] std::string top_json(const Top& top);

}  // namespace weir::cli
