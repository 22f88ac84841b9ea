#pragma once

/// @file
/// Progress for memory that only the host uses.

#include <cstdint>
#include <limits>
#include <stop_token>

#include "allocator/progress/progress.hpp"

namespace weir {

/// Progress of a device that does nothing: every point is passed at once, so a freed block may be
/// reused at once. Thread-safe.
class HostProgress final : public Progress {
 public:
  /// Returns a stream of it.
  [[nodiscard]] StreamId stream() const noexcept { return stream_; }

  [[nodiscard]] Point record(StreamId stream) override { return {stream, 0}; }
  [[nodiscard]] std::uint64_t passed(StreamId /*stream*/) override {
    return std::numeric_limits<std::uint64_t>::max() - 1;  // the last is Block::kUnrecorded
  }
  [[nodiscard]] bool wait(Point /*point*/, const WaitLimit& /*limit*/) override { return true; }
  void make_wait(StreamId /*waiter*/, Point /*point*/) override {}

 private:
  const StreamId stream_ = StreamId::next();
};

}  // namespace weir
