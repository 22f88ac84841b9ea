#pragma once

/// @file
/// What each stage found while a pool tried to serve one request: the raw material of the report.

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include "allocator/base/bytes.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

/// One request and what was found on its way. Written by the pool, read by the caller that failed.
struct Attempt {
  Bytes asked{};             ///< as requested, before rounding
  Bytes block{};             ///< after rounding; zero when no block can be that large
  StreamId stream{};         ///< whose work the memory is for
  std::string_view label{};  ///< the holder's name, the caller's text; not copied
  std::stop_token stop{};    ///< ends the waits for this request: it fails then; the caller's too

  Bytes growth_room{};             ///< what the budget left when growth was tried last
  bool asked_all = true;           ///< no stream was left out that something waits for
  bool upstream_refused = false;   ///< the budget had room and the upstream had not
  Bytes releasable{};              ///< cached and passed when release was tried last
  std::uint64_t releases = 0;      ///< segments released for this request
  bool hand_over_allowed = false;  ///< RunningOut::hand_over when the request came to it
  bool wait_allowed = false;       ///< RunningOut::wait when the request came to it
  std::uint64_t waits = 0;         ///< waits on the host for this request
};

}  // namespace weir
