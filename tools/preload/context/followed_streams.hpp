#pragma once

// The streams of one context, with the fences that the device has not passed. A stream that is gone
// stays until the device has passed its work.

#include <atomic>
#include <chrono>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "allocator/progress/events.hpp"
#include "allocator/progress/progress.hpp"
#include "tools/preload/context/last_found.hpp"
#include "tools/preload/driver/this_thread.hpp"

namespace weir::preload {

struct Fence {
  std::uint64_t sequence = 0;
  std::list<CUevent> events;  ///< not known to be passed
  std::vector<Point> others;  ///< of streams that are gone; must be passed as well
  std::chrono::steady_clock::time_point recorded;
  std::uint64_t threads_ended = 0;  ///< ended threads whose streams it covers
};

struct FollowedStream {
  // A fence on everything reads the first cache line of each.
  StreamId id;
  CUstream handle = nullptr;     ///< null for the two that are not the driver's
  std::uint64_t owner = 0;       ///< the thread whose default stream it is; 0 if none
  std::optional<bool> blocking;  ///< waits for the legacy stream; empty until asked
  bool removed = false;
  bool covered = false;     ///< removed, and a fence on everything covers its last fence
  bool unfenced = false;    ///< no fence covers its last work
  FenceQueue<Fence> queue;  ///< its points, and its fences that are not passed
  ThreadEnded ended;        ///< whether the thread of a default stream has ended

  /// Returns whether nobody can name the stream any more.
  [[nodiscard]] bool gone() const noexcept {
    return removed || (ended != nullptr && ended->load(std::memory_order_acquire));
  }
  /// Returns whether the program created it.
  [[nodiscard]] bool is_created() const noexcept {
    return handle != nullptr && handle != CU_STREAM_LEGACY && owner == 0;
  }
};

/// Finds streams by id, handle and thread. Not thread-safe, except for `found_last`.
class FollowedStreams {
 public:
  /// Below this number of streams, does not look for gone ones.
  static constexpr std::size_t kFewStreams = 64;

  /// The ids are new, of two streams that are not the driver's: see Fences.
  FollowedStreams(StreamId everything, StreamId parked);

  /// Returns the handle's stream if this thread found it in `streams` last.
  [[nodiscard]] static std::optional<StreamId> found_last(const FollowedStreams* streams,
                                                          CUstream handle) noexcept {
    const bool same = last_found.streams == streams && last_found.handle == handle &&
                      last_found.changes == changes_of_handles.load(std::memory_order_acquire);
    return same ? std::optional(last_found.id) : std::nullopt;
  }
  // These return null if the stream is not followed.
  [[nodiscard]] FollowedStream* find(StreamId id);
  [[nodiscard]] const FollowedStream* find(StreamId id) const;
  [[nodiscard]] FollowedStream* find(CUstream handle);
  [[nodiscard]] FollowedStream* find_own();  ///< the calling thread's default stream
  /// Follows a stream whose creation was not seen: there may be more. Notes it for `found_last`.
  [[nodiscard]] StreamId find_or_add(CUstream handle);
  /// `owner` is the calling thread for its default stream, and otherwise 0.
  FollowedStream& add(CUstream handle, std::uint64_t owner);
  /// If this throws, the stream counts as one whose creation was not seen.
  void created(CUstream handle, bool blocking);
  /// The stream's handle may be reused from now on.
  void remove(FollowedStream& stream) noexcept;

  [[nodiscard]] StreamId everything() const noexcept { return everything_; }
  [[nodiscard]] StreamId parked() const noexcept { return parked_; }
  /// Returns the stream of parked points, from the first call on.
  [[nodiscard]] FollowedStream& park();
  /// Returns whether the point is parked and no fence covers it yet.
  [[nodiscard]] bool is_parked(Point point) const;

  [[nodiscard]] auto& all() noexcept { return streams_; }  ///< by id
  [[nodiscard]] std::size_t size() const noexcept { return streams_.size(); }
  /// Returns whether streams may exist whose creation was not seen.
  [[nodiscard]] bool some_unknown() const noexcept { return unknown_; }
  /// Returns after how many points of the stream a fence is recorded even if nobody asks.
  [[nodiscard]] std::uint32_t most_points(const FollowedStream& stream) const noexcept;
  /// Returns whether asking how far the stream has come costs more than its points justify.
  [[nodiscard]] bool is_costly(StreamId stream) const noexcept;

  /// Returns whether to look for gone streams.
  [[nodiscard]] bool many() const noexcept { return streams_.size() >= forget_at_; }
  /// Forgets gone streams whose work is passed. Returns at which number there are `many` again.
  std::size_t forget_gone() noexcept;
  /// Forgets destroyed streams without a fence: all their work is passed.
  void forget_passed() noexcept;
  /// Call when the context is gone, with all work of its streams.
  void end() noexcept {
    ended_ = true;
    for (auto& [id, stream] : streams_) stream.queue.fences().clear();
  }
  [[nodiscard]] bool ended() const noexcept { return ended_; }

 private:
  /// Returns whether a fence of the stream asks every stream.
  [[nodiscard]] bool asks_all(const FollowedStream& stream) const noexcept {
    return stream.id == everything_ || stream.handle == CU_STREAM_LEGACY;
  }

  /// How often a handle got or lost its stream, in any context. Changes under that context's lock.
  inline static constinit std::atomic<std::uint64_t> changes_of_handles{0};

  const StreamId everything_;
  const StreamId parked_;
  std::unordered_map<std::uint64_t, FollowedStream> streams_;
  std::unordered_map<CUstream, FollowedStream*> by_handle_;
  std::unordered_map<std::uint64_t, FollowedStream*> by_thread_;
  std::size_t forget_at_ = kFewStreams;
  bool unknown_ = false;
  bool ended_ = false;
};

}  // namespace weir::preload
