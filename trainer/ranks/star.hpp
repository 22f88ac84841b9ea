#pragma once

/// @file
/// Connections between rank 0 and each other rank, and messages over them.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/ranks/socket.hpp"
#include "trainer/ranks/transport.hpp"

namespace weir {

/// A connection for each rank at the other end: on rank 0 all others, on another one rank 0.
using Links = std::map<int, Socket>;

/// Where rank 0 is found, and what a rank says so that rank 0 knows it for one of this run.
struct MeetingPlace {
  std::string host{};               ///< of rank 0
  std::uint16_t port = 0;           ///< on which it listens
  std::array<char, 16> password{};  ///< of this run
};

/// Connects each rank with rank 0, `sets` times. `listener` is rank 0's, unused elsewhere. Drops
/// connections without the password. Throws Error after `within`, naming the ranks that are
/// missing.
[[nodiscard]] std::vector<Links> meet(int rank, int size, const MeetingPlace& place,
                                      const Socket& listener, std::size_t sets,
                                      std::chrono::nanoseconds within);

/// Messages over `links`, between rank 0 and another rank only: enough for calls that go by rank 0
/// (broadcast, gather_all, barrier).
[[nodiscard]] std::unique_ptr<Transport> open_star(int rank, int size, Links links);

}  // namespace weir
