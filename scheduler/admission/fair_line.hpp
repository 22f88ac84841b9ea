#pragma once

// The order in which waiting producers are admitted: in turn by bytes, so that a producer of large
// batches neither starves nor is starved. Start-time fair queueing (Goyal, Vin, Cheng 1996): a
// waiter's tag is where its producer's last batch ended, or the present virtual time if later; the
// smallest tag is first. A producer submits one batch after the other, so it is out of the line
// while its batch is open; `yields` keeps its turn meanwhile. A data structure only; its user holds
// the lock.

#include <cstdint>
#include <vector>

#include "allocator/base/bytes.hpp"

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

  /// May throw for lack of memory; nothing after it does.
  void join(Place& place, std::uint64_t producer, Bytes bytes);
  /// Null when nobody waits.
  [[nodiscard]] Place* first() const noexcept;
  [[nodiscard]] bool is_first(const Place& place) const noexcept { return first() == &place; }
  /// Whether a producer that has a batch open would be before `place` if it were back in the line.
  /// Without this a large batch would get in whenever the producer of small ones is busy
  /// submitting: each would get one batch in turn, and not the same bytes. A producer that is
  /// further behind than the bytes of `place` is held back by its own host, and nobody's turn is
  /// kept for that.
  [[nodiscard]] bool yields(const Place& place) const noexcept;
  /// Admitted: its bytes count against its producer, until `correct` says better.
  void serve(Place& place) noexcept;
  /// Once for each that was served as one of `expected` bytes: it turned out to hold `held`.
  void correct(std::uint64_t producer, Bytes expected, Bytes held) noexcept;
  /// Gone without being admitted: nothing counts.
  void leave(Place& place) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }

 private:
  struct Account {
    std::uint64_t producer;
    std::uint64_t end;  ///< tag at which this producer's last served batch ended
    bool open = false;  ///< that batch was not corrected yet
  };

  std::vector<Place*> waiting_;
  std::vector<Account> accounts_;  ///< those that are open, or whose end is beyond the virtual time
  std::uint64_t virtual_time_ = 0;
  std::uint64_t arrivals_ = 0;
};

}  // namespace weir
