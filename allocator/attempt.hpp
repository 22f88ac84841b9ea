#pragma once

/// @file
/// What each stage found for one request: the facts of a failure report.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "allocator/base/bytes.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

/// One request and its findings, written by the pool for the caller of a failed request.
struct Attempt {
  Bytes asked{};             ///< as requested, before rounding
  Bytes block{};             ///< after rounding; zero when no block can be that large
  StreamId stream{};         ///< whose work the memory is for
  std::string_view label{};  ///< the holder's name; not copied
  WaitLimit limit{};         ///< of all waits; once it is over, the request fails
  /// Fail before the stages that hand over or wait for the device, whatever RunningOut allows.
  bool at_once = false;
  /// Go on behind the stages in which this attempt has just failed `at_once`.
  bool resumed = false;
  /// The memory is for any stream and the host at once, so nobody could wait for a hand-over.
  bool for_all = false;
  /// The caller has awaited the device, so segments may be released: see Upstream::may_release.
  bool may_release = false;

  Bytes growth_room{};            ///< budget left at the last try to grow
  std::uint64_t looked = 0;       ///< `PoolState::cached_more` at the last look into the cache
  bool asked_all = true;          ///< every stream with waiting blocks was asked
  bool upstream_refused = false;  ///< the budget had room, the upstream had none
  Bytes lacks{};                  ///< what the upstream did not give then
  /// Statistics::releases before the upstream was asked. If it has grown, asking again may help.
  std::uint64_t releases_before = 0;
  Bytes releasable{};                 ///< cached and passed at the last try to release
  std::uint64_t releases = 0;         ///< segments released for this request
  bool busy = false;                  ///< none, since that would have waited for the device
  bool hand_over_allowed = false;     ///< RunningOut::hand_over at that stage
  bool wait_allowed = false;          ///< RunningOut::wait at that stage
  std::uint64_t waits = 0;            ///< waits on the host
  std::chrono::nanoseconds waited{};  ///< their total time
  std::optional<Point> earlier{};  ///< to wait for before a hand-over; see RunningOut::wait_first
  bool waited_first = false;       ///< it has done so
};

}  // namespace weir
