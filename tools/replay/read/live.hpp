#pragma once

// What is live at which address while a log is read, for logs that name buffers by it.

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "tools/replay/read/trace.hpp"

namespace weir::replay {

/// Streams by the number or the handle that a log has for them, made dense.
class StreamNumbers {
 public:
  [[nodiscard]] std::uint32_t of(std::uint64_t handle);

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  std::uint64_t last_ = 0;
  std::optional<std::uint32_t> last_number_;  ///< most lines name the stream of the line before
};

/// Adds to a trace what happens at addresses. Each call throws Malformed and changes nothing when
/// it cannot have happened so.
class LiveAddresses {
 public:
  explicit LiveAddresses(TraceBuilder& builder) : builder_(builder) {}

  void allocate(std::uint64_t address, Bytes bytes, std::uint64_t stream);
  /// `bytes`, where it is given, has to be what was allocated.
  void free(std::uint64_t address, std::optional<Bytes> bytes, std::uint64_t stream);
  void use(std::uint64_t address, std::uint64_t stream);

 private:
  [[nodiscard]] std::uint32_t live_at(std::uint64_t address, const char* what) const;

  TraceBuilder& builder_;
  StreamNumbers streams_;
  std::unordered_map<std::uint64_t, std::uint32_t> live_;
};

}  // namespace weir::replay
