#pragma once

// What each stage found while a pool tried to serve one request: the raw material of the report.

#include <cstdint>
#include <string>
#include <string_view>

#include "allocator/bytes.hpp"
#include "allocator/progress.hpp"

namespace weir {

struct Attempt {
  Bytes asked{};
  Bytes block{};  ///< after rounding; zero when no block can be that large
  StreamId stream{};
  std::string_view label{};

  Bytes growth_room{};  ///< what the budget left when growth was tried last
  bool upstream_refused = false;
  Bytes releasable{};          ///< cached and passed when release was tried last
  std::uint64_t releases = 0;  ///< segments released for this request
  bool hand_over_allowed = false;
  bool wait_allowed = false;
  std::uint64_t waits = 0;  ///< waits on the host for this request
};

}  // namespace weir
