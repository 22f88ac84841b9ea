#pragma once

// Tracks live addresses, for logs that identify buffers by address.

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "tools/replay/read/trace.hpp"

namespace weir::replay {

/// Maps a log's stream numbers or handles to dense numbers.
class StreamNumbers {
 public:
  [[nodiscard]] std::uint32_t of(std::uint64_t handle);

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  std::uint64_t last_ = 0;
  std::optional<std::uint32_t> last_number_;  ///< most lines name the stream of the line before
};

/// Adds allocations and frees by address to a trace. Each call throws Malformed and changes nothing
/// if it contradicts the calls before it.
class LiveAddresses {
 public:
  explicit LiveAddresses(TraceBuilder& builder) : builder_(builder) {}

  void allocate(std::uint64_t address, Bytes bytes, std::uint64_t stream);
  /// `bytes`, if given, must be the allocated size.
  void free(std::uint64_t address, std::optional<Bytes> bytes, std::uint64_t stream);
  void use(std::uint64_t address, std::uint64_t stream);

 private:
  [[nodiscard]] std::uint32_t live_at(std::uint64_t address, const char* what) const;

  TraceBuilder& builder_;
  StreamNumbers streams_;
  std::unordered_map<std::uint64_t, std::uint32_t> live_;
};

}  // namespace weir::replay
