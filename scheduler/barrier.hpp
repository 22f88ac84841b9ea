#pragma once

// A wait for the device that the program asked for, for timelines.

#include <string_view>

#include "allocator/base/call_site.hpp"
#include "allocator/timeline/sink.hpp"

namespace weir {

/// From its construction to its end the calling thread waits for the device.
class Barrier {
 public:
  /// `name` is the call that waits, at `where`; `batch` is the one that it belongs to, if any, and
  /// `source` the device's number.
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
