#pragma once

// What batches are charged. Each charge is owned by a ticket that is settled exactly once; the sum
// is zero when nothing runs. A data structure only: its user holds the lock and does the waiting.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/bytes.hpp"
#include "allocator/progress.hpp"
#include "scheduler/stream.hpp"

namespace weir {

/// What is known of the batches of one kind.
struct BatchKind {
  std::string name;
  std::optional<Bytes> footprint;  ///< decayed maximum of the peaks; nothing before the first
  std::chrono::nanoseconds device_time{};  ///< moving average
};

/// One batch's charge. An open ticket belongs to the thread that opened its batch.
struct Ticket {
  enum class State : std::uint8_t { kFree, kOpen, kSubmitted };

  State state = State::kFree;
  std::uint64_t serial = 0;  ///< never used twice, so a stale reference is told from a live one
  BatchKind* kind = nullptr;
  Bytes estimate{};
  Bytes net{};               ///< allocated by the batch and not freed again into the cache
  Bytes peak{};              ///< largest net: its footprint
  Bytes awaiting{};          ///< part of net: freed and awaiting the device
  std::uint64_t closed = 0;  ///< its place in the order of closing
  bool learn = true;         ///< an abandoned batch says nothing about its kind
  std::array<bool, kStreamRoles> touched{};
  std::array<Point, kStreamRoles> points{};  ///< of the touched streams, once closed
  std::atomic<std::int64_t> device_time{0};  ///< nanoseconds, added by the device's threads
};

/// A ticket as others remember it.
struct TicketRef {
  Ticket* ticket = nullptr;
  std::uint64_t serial = 0;
};

class Ledger {
 public:
  /// A point that could not be recorded yet; see `unrecorded`.
  static constexpr std::uint64_t kUnrecorded = UINT64_MAX;

  [[nodiscard]] BatchKind& kind(std::string_view name);

  Ticket& open(BatchKind& kind, Bytes estimate);
  void note_allocated(TicketRef ref, Bytes bytes);
  void note_freed(TicketRef ref, Bytes bytes, bool awaiting);
  /// The batch is submitted; `points` hold those of its touched streams. From now on its charge is
  /// what it left awaiting.
  void close(Ticket& ticket, const std::array<Point, kStreamRoles>& points, bool learn);
  /// Settles every submitted batch whose points are passed; how many.
  std::size_t settle(const std::array<std::uint64_t, kStreamRoles>& passed);

  [[nodiscard]] bool is_open(TicketRef ref) const noexcept;
  /// Whether a batch that was opened before `serial` is still open.
  [[nodiscard]] bool older_open(std::uint64_t serial) const noexcept;
  [[nodiscard]] Bytes charge(const Ticket& ticket) const noexcept;
  [[nodiscard]] Bytes charged() const noexcept;  ///< sum over all tickets
  [[nodiscard]] Bytes unspent() const noexcept;  ///< promised to open batches, not yet allocated
  [[nodiscard]] std::uint64_t open_count() const noexcept { return open_.size(); }
  [[nodiscard]] std::uint64_t submitted() const noexcept { return submitted_.size(); }
  /// What unsettled batches hold: net of the open ones, awaiting of the submitted ones.
  [[nodiscard]] Bytes in_flight() const noexcept;
  /// Device time that the submitted batches are expected to take. A batch of a kind never settled
  /// counts as kUnknownTime, so that what is not known yet cannot queue up.
  static constexpr std::chrono::nanoseconds kUnknownTime = std::chrono::hours(1);
  [[nodiscard]] std::chrono::nanoseconds queued_time() const noexcept;
  [[nodiscard]] std::uint64_t settled() const noexcept { return settled_; }
  /// What a frontend that is held back waits for: a point, not passed, of the batch a quarter into
  /// the queue. With fewer than four submitted that is the oldest; with many, waking for each of
  /// them would cost the device more than it gives, and three quarters are still queued. Nothing
  /// when no such point is known.
  [[nodiscard]] std::optional<Point> point_to_await(
      const std::array<std::uint64_t, kStreamRoles>& passed) const noexcept;
  /// Roles for which some submitted batch still lacks its point, and how it gets one.
  [[nodiscard]] std::array<bool, kStreamRoles> unrecorded() const noexcept;
  /// `closed` is from before `point` was recorded: it says nothing of batches that closed later.
  void note_recorded(StreamRole role, Point point, std::uint64_t closed) noexcept;
  [[nodiscard]] std::uint64_t closed() const noexcept { return closed_; }  ///< batches so far

 private:
  void learn_from(Ticket& ticket);

  std::map<std::string, std::unique_ptr<BatchKind>, std::less<>> kinds_;
  std::vector<std::unique_ptr<Ticket>> tickets_;  ///< owns them; they are used again
  std::vector<Ticket*> free_;
  std::vector<Ticket*> open_;
  std::vector<Ticket*> submitted_;  ///< in the order of their closing
  std::uint64_t serials_ = 0;
  std::uint64_t closed_ = 0;
  std::uint64_t settled_ = 0;
};

}  // namespace weir
