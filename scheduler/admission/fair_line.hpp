#pragma once

// The order in which waiting producers are admitted: fair by bytes, so that a producer of large
// batches neither starves nor is starved. Start-time fair queueing (Goyal, Vin, Cheng 1996): a
// waiter's tag is the end of its producer's last batch, or the virtual time if later; the smallest
// tag is first. A batch moves its producer's end by its bytes over the producer's weight. One that
// holds nothing moves it like the last batch that held something, so that its producer gets no
// more turns than others. A producer submits one batch at a time, so it is out of the line
// while its batch is open; `yields` keeps its turn.
//
// Others pay for a batch when they come back for the next one. A newcomer may never come back, so
// it pays for one in advance: its tag is later by its own batch. Otherwise a program that begins
// each batch on a new thread would take all turns of those that stay. Among themselves newcomers
// keep the order of their arrival.
//
// A data structure only; the user holds the lock.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "allocator/base/bytes.hpp"

namespace weir {

/// Who begins batches. Each thread is a producer, and ends with its thread.
struct Producer {
  using End = std::shared_ptr<const std::atomic<bool>>;

  Producer(std::uint64_t id, End end = {}) noexcept : number(id), ended(std::move(end)) {}

  std::uint64_t number;
  End ended;  ///< set once it begins no more batches; null: it never ends
};

/// Returns the calling thread's number in the process, from 1 on. Never used again, unlike a thread
/// id.
[[nodiscard]] std::uint64_t this_thread_number() noexcept;

/// Returns the calling thread as a producer. In a destructor of a thread_local, the thread may
/// already count as ended.
[[nodiscard]] Producer this_producer();

class FairLine {
 public:
  /// Bytes over a weight, in units of 2^-32 bytes: any weight counts for a batch of one byte, and
  /// the sum of 2^32 batches of any size fits.
  __extension__ using Virtual = unsigned __int128;

  /// A place in the line. The waiter owns it; it is in the line from `join` to `serve` or `leave`.
  struct Place {
    std::uint64_t producer = 0;
    std::uint32_t weight = 1;  ///< of the producer; at least 1
    Bytes bytes{};
    Virtual tag = 0;
    std::uint64_t arrival = 0;
    bool is_newcomer = false;  ///< nothing was known of the producer
    Producer::End ended{};     ///< of the producer
  };

  /// Sets every field of `place`. The only function that may throw (std::bad_alloc). Zero `bytes`:
  /// not known, so it counts as the last batch that held something.
  void join(Place& place, const Producer& producer, Bytes bytes, std::uint32_t weight = 1);
  /// Returns the first of those that `may(const Place&)` go now. Null if there is none.
  template <typename MayGo>
  [[nodiscard]] Place* first(const MayGo& may) const noexcept {
    Place* first = nullptr;
    for (Place* place : waiting_) {
      if (!may(std::as_const(*place))) continue;
      if (first == nullptr ||
          std::tie(place->tag, place->arrival) < std::tie(first->tag, first->arrival)) {
        first = place;
      }
    }
    return first;
  }
  /// Returns the first of all.
  [[nodiscard]] Place* first() const noexcept {
    return first([](const Place&) { return true; });
  }
  [[nodiscard]] bool is_first(const Place& place) const noexcept { return first() == &place; }
  /// True if a producer with an open batch, or one that was back soon the last time and is away,
  /// would be before `place` if it were in the line. Without this, a large batch would enter
  /// whenever the producer of small ones is busy loading or submitting: both would get equal
  /// batches instead of equal bytes. A producer that is behind by more than the bytes of `place` is
  /// slowed by its own host; its turn is not kept. Nor is that of one that was late (note_late), or
  /// that has ended.
  [[nodiscard]] bool yields(const Place& place) const noexcept { return yields_to(place) != 0; }
  /// Returns any such producer; 0: there is none.
  [[nodiscard]] std::uint64_t yields_to(const Place& place) const noexcept {
    return yields_to(place, [](std::uint64_t, std::uint32_t) { return true; });
  }
  /// Returns one that `may(producer, weight)` hold others up; 0: there is none.
  template <typename MayHoldUp>
  [[nodiscard]] std::uint64_t yields_to(const Place& place, const MayHoldUp& may) const noexcept {
    const Virtual most_behind = share_of(place.bytes, place.weight);
    const auto found = std::ranges::find_if(accounts_, [&](const Account& account) {
      return account.producer != place.producer && account.end < place.tag &&
             place.tag - account.end <= most_behind && account.late == 0 && !account.has_ended() &&
             (account.open != 0 || (account.returned && !account.waiting)) &&
             may(account.producer, account.weight);
    });
    return found != accounts_.end() ? found->producer : 0;
  }
  /// Call if the device ran dry while a batch yielded to `producer`. It has to be back in the line
  /// several times before its turn is kept again: twice as often each time, up to kMostLate.
  static constexpr std::uint32_t kMostLate = 64;
  void note_late(std::uint64_t producer) noexcept;
  /// Returns the sum of the weights of all that wait, have an open batch, or were here just now and
  /// have not ended.
  [[nodiscard]] std::uint64_t weights() const noexcept;
  /// Admits: charges its bytes to its producer, until `correct` replaces them.
  void serve(Place& place) noexcept;
  /// Replaces the `expected` bytes of a served place by the bytes `held`. Once per place.
  void correct(std::uint64_t producer, Bytes expected, Bytes held) noexcept;
  /// Removes a place without charging it.
  void leave(Place& place) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }
  /// Returns how many producers it remembers.
  [[nodiscard]] std::size_t accounts() const noexcept { return accounts_.size(); }
  /// In no order.
  [[nodiscard]] const std::vector<Place*>& waiting() const noexcept { return waiting_; }

 private:
  struct Account {
    std::uint64_t producer = 0;
    std::uint32_t weight = 1;
    Producer::End ended{};
    Virtual end = 0;         ///< tag at which this producer's last served batch ended
    Virtual last = 0;        ///< by how much that batch moved the end
    std::uint32_t open = 0;  ///< batches not corrected yet
    /// It was back in the line while it had this account: as a rule it is away for a short time.
    bool returned = false;
    bool waiting = false;    ///< it is in the line
    std::uint32_t late = 0;  ///< how often it has to be back before its turn is kept again
    std::uint32_t fine = 0;  ///< what `late` was set to the last time

    [[nodiscard]] bool has_ended() const noexcept { return ended != nullptr && *ended; }
    [[nodiscard]] bool is_away() const noexcept { return open == 0 && !waiting; }
  };

  [[nodiscard]] Virtual tag_of_newcomer(Bytes bytes, std::uint32_t weight) const noexcept;
  [[nodiscard]] Account* find(std::uint64_t producer) noexcept;
  [[nodiscard]] Virtual share_of(Bytes bytes, std::uint32_t weight) const noexcept;

  std::vector<Place*> waiting_;
  std::vector<Account> accounts_;  ///< open, waiting, or of an end less than a batch ago
  Virtual virtual_time_ = 0;
  /// Of the last batch that held something; until then the most that one asked for.
  Bytes last_held_{1};
  bool any_held_ = false;
  std::uint64_t arrivals_ = 0;
};

}  // namespace weir
