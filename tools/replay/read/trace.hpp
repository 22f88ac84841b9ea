#pragma once

// What a program requested from its allocator, in order: sizes, lifetimes and streams of its
// buffers, but no addresses. And helpers for readers of logs that name streams by handles and
// buffers by addresses.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocator/base/bytes.hpp"

namespace weir::replay {

enum class Action : std::uint8_t {
  kAllocate,  ///< on `stream`
  kFree,      ///< on `stream`
  kUse,       ///< the buffer is also used on `stream`
};

struct Operation {
  Bytes bytes;               ///< the buffer's size as requested
  std::uint32_t buffer = 0;  ///< from 0, in the order of allocation
  std::uint32_t stream = 0;  ///< from 0, in the order in which streams first appear
  Action action = Action::kAllocate;

  friend bool operator==(const Operation&, const Operation&) = default;
};

struct Trace {
  std::string name;  ///< the file, and the pool if the file has several
  std::vector<Operation> operations;
  std::uint32_t buffers = 0;
  std::uint32_t streams = 0;
  std::string cut;                 ///< why the trace ends early; empty if complete
  std::vector<std::string> notes;  ///< further remarks for readers of its figures
};

/// Returns the most bytes of `trace` that are live at one time, as requested.
[[nodiscard]] Bytes peak_requested(const Trace& trace);

/// An error in a line or a record. Readers add the file and the line.
class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Builds a trace and checks each operation. Throws Malformed.
class TraceBuilder {
 public:
  /// Far beyond any device, and small enough that no sum over a trace overflows.
  static constexpr Bytes kMostBuffer = gib(1024);
  static constexpr Bytes kMostInAll = gib(std::uint64_t{1} << 30U);

  explicit TraceBuilder(std::string name) { trace_.name = std::move(name); }

  /// Reserves room for about this many operations.
  void expect(std::size_t operations);
  /// Returns the number of the new buffer.
  [[nodiscard]] std::uint32_t allocate(Bytes bytes, std::uint32_t stream);
  /// `buffer` must be live.
  void free(std::uint32_t buffer, std::uint32_t stream);
  void use(std::uint32_t buffer, std::uint32_t stream);

  [[nodiscard]] Trace& trace() noexcept { return trace_; }
  /// Returns the size of a buffer that was allocated.
  [[nodiscard]] Bytes size_of(std::uint32_t buffer) const { return sizes_[buffer]; }
  /// Returns the trace. Do not use the builder afterwards.
  [[nodiscard]] Trace finish();

  /// Throws if no buffer may have this size.
  static void check_size(Bytes bytes);

 private:
  void add(Action action, std::uint32_t buffer, std::uint32_t stream);

  Trace trace_;
  std::vector<Bytes> sizes_;
  Bytes in_all_;
};

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
