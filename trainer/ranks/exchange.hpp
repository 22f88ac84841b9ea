#pragma once

/// @file
/// The collective calls in host memory, made of messages, in an order that depends on nothing but
/// sizes and ranks. Formulas for the bytes: shards.hpp.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/ranks/communicator.hpp"
#include "trainer/ranks/transport.hpp"

namespace weir {

/// How long a call waits for other ranks that live.
struct Patience {
  std::chrono::nanoseconds warn_after = std::chrono::seconds(10);     ///< names them, once a call
  std::chrono::nanoseconds give_up_after = std::chrono::minutes(10);  ///< ends every rank
};

/// One thread at a time, except `traffic`.
class Exchange {
 public:
  /// Ends the ranks for the reason given. Must not return.
  using GiveUp = std::function<void(const std::string& reason)>;

  /// Most floats of a share that travel at once: the scratch memory is `size` times as large.
  static constexpr std::size_t kPiece = std::size_t{1} << 18U;

  /// `transport` must outlive it.
  Exchange(Transport& transport, const Patience& patience, GiveUp give_up,
           std::size_t piece = kPiece)
      : transport_(transport), patience_(patience), give_up_(std::move(give_up)), piece_(piece) {}

  /// As Communicator says of each.
  void broadcast(std::span<std::byte> bytes);
  void gather_all(std::span<const std::byte> mine, std::span<std::byte> all);
  void barrier();
  void all_reduce(std::span<const std::span<float>> parts);
  void all_gather(std::span<const float> mine, std::span<float> all);
  [[nodiscard]] Traffic traffic() const noexcept { return {calls_.load(), bytes_.load()}; }

 private:
  void begin(std::string_view call);
  void gather(std::span<const std::byte> mine, std::span<std::byte> all);
  void send(std::span<const std::byte> bytes, int to);
  void receive(std::span<std::byte> bytes, int from) { transport_.receive(bytes, from, tag_); }
  /// Returns when everything started is done; see Patience.
  void wait();
  void reduce(std::span<float> values);
  /// Returns the part of a rank's share that travels in one round.
  [[nodiscard]] std::span<float> piece(std::span<float> values, int rank, std::size_t round) const;
  /// Replaces this rank's piece by its sum, added in the order of ranks.
  void add_up(std::span<float> mine);
  [[nodiscard]] std::string late_ranks() const;

  Transport& transport_;
  const Patience patience_;
  const GiveUp give_up_;
  const std::size_t piece_;
  std::string_view call_;  ///< the current one, a literal
  int tag_ = 0;            ///< of the current call; calls are counted in it
  std::vector<float> scratch_;
  std::vector<float> packed_;  ///< the parts of one all_reduce
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace weir
