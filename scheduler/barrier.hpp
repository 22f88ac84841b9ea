#pragma once

#include <cstdint>
#include <string_view>

#include "allocator/base/error.hpp"
#include "allocator/timeline/sink.hpp"

namespace weir {

/// Records that the program makes the calling thread wait for the device during its lifetime.
class Barrier {
 public:
  /// `name` is the waiting call, at `where`; `batch` its batch, if any; `source` the device's
  /// number.
  Barrier(std::string_view name, CallSite where, std::uint16_t source,
          std::uint32_t batch = 0) noexcept
      : name_(name), where_(where), source_(source), batch_(batch) {}
  ~Barrier() {
    TimelineSink* const sink = slice_.sink();
    if (sink == nullptr) return;
    slice_.write({.batch = batch_,
                  .name = sink->name(name_),
                  .site = sink->site(where_.file, where_.line),
                  .source = source_,
                  .kind = TimelineKind::kBarrier});
  }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

 private:
  const TimelineSlice slice_;
  const std::string_view name_;
  const CallSite where_;
  const std::uint16_t source_;
  const std::uint32_t batch_;
};

}  // namespace weir
