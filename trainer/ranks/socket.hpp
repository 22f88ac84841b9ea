#pragma once

/// @file
/// TCP connections between ranks. Every wait has a deadline.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

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

}  // namespace weir
