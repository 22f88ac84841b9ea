#pragma once

#include <cstdint>
#include <stop_token>

#include "allocator/progress/progress.hpp"

namespace weir::testing {

/// A device of one counter: it keeps no state for a stream, and its calls take no time.
class OneCounter final : public Progress {
 public:
  void pass_all() { passed_ = last_; }

  [[nodiscard]] Point record(StreamId stream) override { return {stream, ++last_}; }
  [[nodiscard]] std::uint64_t passed(StreamId /*stream*/) override { return passed_; }
  [[nodiscard]] bool wait(Point /*point*/, const WaitLimit& /*limit*/) override {
    pass_all();
    return true;
  }
  void make_wait(StreamId /*waiter*/, Point /*point*/) override {}

 private:
  std::uint64_t last_ = 0;
  std::uint64_t passed_ = 0;
};

}  // namespace weir::testing
