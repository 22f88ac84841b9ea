#pragma once

// The order in which waiting producers are admitted: in turn by bytes, so that a producer of large
// batches neither starves nor is starved. Start-time fair queueing (Goyal, Vin, Cheng 1996): a
// waiter's tag is where its producer's last batch ended, or the present virtual time if later; the
// smallest tag is first. A data structure only; its user holds the lock.

#include <cstdint>
#include <vector>

#include "allocator/bytes.hpp"

namespace weir {

class FairLine {
 public:
  /// A place in the line; lives with its waiter, from `join` to `serve` or `leave`.
  struct Place {
    std::uint64_t producer = 0;
    Bytes bytes{};
    std::uint64_t tag = 0;
    std::uint64_t arrival = 0;
  };

  void join(Place& place, std::uint64_t producer, Bytes bytes);
  [[nodiscard]] bool is_first(const Place& place) const noexcept { return first() == &place; }
  /// Admitted: its bytes count against its producer.
  void serve(Place& place);
  /// Gone without being admitted: nothing counts.
  void leave(Place& place) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }

 private:
  struct Account {
    std::uint64_t producer;
    std::uint64_t end;  ///< tag at which this producer's last served batch ended
  };

  [[nodiscard]] const Place* first() const noexcept;

  std::vector<Place*> waiting_;
  std::vector<Account> accounts_;  ///< those whose end is beyond the virtual time
  std::uint64_t virtual_time_ = 0;
  std::uint64_t arrivals_ = 0;
};

}  // namespace weir
