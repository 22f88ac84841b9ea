#pragma once

/// @file
/// TCP connections between rank 0 and each other rank, and messages over them. Every wait has a
/// deadline.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/ranks/transport.hpp"

namespace weir {

/// Owns a socket. Not thread-safe.
class Socket {
 public:
  using Clock = std::chrono::steady_clock;

  Socket() = default;
  explicit Socket(int descriptor) noexcept : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();

  [[nodiscard]] int get() const noexcept { return descriptor_; }
  [[nodiscard]] explicit operator bool() const noexcept { return descriptor_ >= 0; }

  /// Sends or receives all of `bytes`. Throws Error at the deadline, or if the connection ends.
  void send_all(std::span<const std::byte> bytes, Clock::time_point deadline) const;
  void receive_all(std::span<std::byte> bytes, Clock::time_point deadline) const;

 private:
  int descriptor_ = -1;
};

/// Listens on `port` of every address of this machine, or of this machine alone; 0: any free port.
/// Throws Error.
[[nodiscard]] Socket listen_on(std::uint16_t port, bool this_machine_alone);
/// Returns the port that it listens on.
[[nodiscard]] std::uint16_t port_of(const Socket& listener);
/// Waits for the next connection. Throws Error at the deadline.
[[nodiscard]] Socket accept_one(const Socket& listener, Socket::Clock::time_point deadline);
/// Connects, and tries again while nobody listens there. Throws Error at the deadline, or if the
/// name is unknown.
[[nodiscard]] Socket connect_to(const std::string& host, std::uint16_t port,
                                Socket::Clock::time_point deadline);
/// Returns this machine's name.
[[nodiscard]] std::string host_name();

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
