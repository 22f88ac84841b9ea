#pragma once

// The order in which waiting producers are admitted: fair by bytes and weight, so that a producer
// of large batches neither starves nor is starved. Self-clocked fair queueing (Golestani 1994): a
// waiter's tag is the virtual time plus its batch's bytes over its weight; the smallest tag is
// first, and serving it sets the virtual time to its tag.
//
// Nothing is kept of a producer between two batches. It has one batch in the line at a time, so
// when it comes back the virtual time is at least its last tag: it owes nothing and is owed
// nothing. Whoever comes for the first time stands exactly like it, so threads that come and never
// return take no turn of those that stay, and leave nothing behind.
//
// A producer is out of the line while it loads and submits. So a large batch would often be first:
// it waits alone while the producer of small ones is away. And of two that are equal the one whose
// host is quicker would take two turns in a row. `is_due` says whether its turn has come: nobody is
// away who comes back, as far as the last batches tell, or it has let others come back (`give_way`)
// and nobody did. Away is a producer that had two of the last batches. Threads that are new for
// each batch are known by their number alone: as many others as waited at one time should have come
// since its own last turn.
//
// A data structure only; the user holds the lock.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/base/bytes.hpp"

namespace weir {

class FairLine {
 public:
  /// Bytes over a weight, in units of 2^-32 bytes: any weight counts for a batch of one byte, and
  /// the sum of 2^32 batches of any size fits.
  __extension__ using Virtual = unsigned __int128;

  /// A place in the line. The waiter owns it; it is in the line from `join` to `serve` or `leave`.
  struct Place {
    std::uint64_t producer = 0;
    Bytes bytes{};
    Virtual share = 0;  ///< bytes over the weight
    Virtual tag = 0;
    std::uint64_t arrival = 0;             ///< zero: not in the line
    std::optional<Virtual> gave_way_at{};  ///< virtual time of `give_way`

    [[nodiscard]] bool is_in_line() const noexcept { return arrival != 0; }
  };

  /// Sets every field of `place`. The only function that may throw (std::bad_alloc). Zero `bytes`
  /// count as the last batch that had some. `weight`: at least 1.
  void join(Place& place, std::uint64_t producer, Bytes bytes, std::uint32_t weight = 1);
  /// Returns the first; null if nobody waits.
  [[nodiscard]] Place* first() const noexcept { return first_; }
  /// Returns whether the turn of the first has come, also if others that are away come back.
  [[nodiscard]] bool is_due(const Place& place) const noexcept {
    return place.gave_way_at == virtual_time_ || !is_anybody_away(place);
  }
  /// Call when the first is about to wait for others to come back.
  void give_way(Place& place) const noexcept { place.gave_way_at = virtual_time_; }
  /// Admits, which moves the virtual time.
  void serve(Place& place) noexcept;
  /// Admits a batch of `producer` that never was in the line, while nobody is. Zero `bytes`: not
  /// known.
  void pass(std::uint64_t producer, Bytes bytes) noexcept;
  /// Removes a place; it moves no virtual time.
  void leave(Place& place) noexcept;
  /// In no order.
  [[nodiscard]] const std::vector<Place*>& waiting() const noexcept { return waiting_; }

 private:
  struct Served {
    std::uint64_t producer = 0;
    std::size_t others = 0;  ///< that waited then
  };
  static constexpr std::size_t kRecent = 16;

  /// Of the last batches, the one before so many.
  [[nodiscard]] const Served& served(std::size_t before) const noexcept {
    return served_.at((next_served_ - 1 - before) % kRecent);
  }
  void note_served(std::uint64_t producer) noexcept;
  [[nodiscard]] bool is_anybody_away(const Place& place) const noexcept;

  std::vector<Place*> waiting_;  ///< in no order
  Place* first_ = nullptr;
  Virtual virtual_time_ = 0;
  std::optional<Bytes> last_bytes_{};
  std::uint64_t arrivals_ = 0;
  std::array<Served, kRecent> served_{};
  std::size_t next_served_ = 0;
  std::size_t alone_ = 0;  ///< last batches of one producer, with no other waiting
};

}  // namespace weir
