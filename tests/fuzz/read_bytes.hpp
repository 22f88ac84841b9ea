#pragma once

// What must hold of the readers of traces, whatever the bytes: a trace that can be replayed, or a
// refusal of one line.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/error.hpp"
#include "tools/replay/read/readers.hpp"

namespace weir::testing {

inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// Each buffer is allocated once, in order, then used, and freed once at most.
inline void check_trace(const replay::Trace& trace) {
  std::vector<bool> live;
  Bytes requested;
  for (const replay::Operation& operation : trace.operations) {
    require(operation.stream < trace.streams, "a stream that is not counted");
    require(operation.bytes.count > 0, "a buffer of no bytes");
    require(operation.bytes <= replay::TraceBuilder::kMostBuffer, "a buffer that is too large");
    if (operation.action == replay::Action::kAllocate) {
      require(operation.buffer == live.size(), "buffers out of order");
      live.push_back(true);
      requested += operation.bytes;
      require(requested <= replay::TraceBuilder::kMostInAll, "a sum that is too large");
      continue;
    }
    require(operation.buffer < live.size() && live[operation.buffer], "a buffer that is not live");
    if (operation.action == replay::Action::kUse) continue;
    live[operation.buffer] = false;
    requested -= operation.bytes;
  }
  require(live.size() == trace.buffers, "buffers that are not counted");
  require(!trace.operations.empty(), "a trace without operations");
}

/// Reads `bytes` as a file of the name `f`; throws std::logic_error where what must hold does not.
/// Whether they were read.
inline bool read_bytes(std::string_view bytes) {
  constexpr Bytes kMost = mib(1);
  try {
    for (const replay::Trace& trace :
         replay::read_traces(replay::unpack("f", std::string(bytes), kMost))) {
      check_trace(trace);
    }
    return true;
  } catch (const UsageError& refusal) {
    const std::string_view text = refusal.what();
    require(text.size() < 1000, "a refusal that is too long");
    for (const char c : text) require(static_cast<unsigned char>(c) >= ' ', "more than one line");
    require(text.find('f') < 2, "a refusal that does not name the file");
    return false;
  }
}

}  // namespace weir::testing
