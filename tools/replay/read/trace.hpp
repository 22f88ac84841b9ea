#pragma once

// What a program asked of its allocator, in order: the sizes, lifetimes and streams of its buffers,
// and nothing of where they lay.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "allocator/base/bytes.hpp"

namespace weir::replay {

enum class Action : std::uint8_t {
  kAllocate,  ///< on `stream`
  kFree,      ///< in the order of `stream`
  kUse,       ///< the buffer is also used on `stream`
};

struct Operation {
  Bytes bytes;               ///< of the buffer, as asked for
  std::uint32_t buffer = 0;  ///< from 0, in the order of allocation
  std::uint32_t stream = 0;  ///< from 0, in the order in which streams first appear
  Action action = Action::kAllocate;

  friend bool operator==(const Operation&, const Operation&) = default;
};

struct Trace {
  std::string name;  ///< the file, and which of its pools where it has several
  std::vector<Operation> operations;
  std::uint32_t buffers = 0;
  std::uint32_t streams = 0;
  std::string cut;                 ///< why it ends early; empty when it is whole
  std::vector<std::string> notes;  ///< what else a reader of its figures has to know
};

/// The most bytes of `trace` that are live at one time, by what was asked for.
[[nodiscard]] Bytes peak_requested(const Trace& trace);

/// What is wrong with a line or a record. Readers add the file and the line.
class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Makes a trace of operations that are checked as they come. Throws Malformed.
class TraceBuilder {
 public:
  /// Far beyond any device, and so little that no sum over a trace can overflow.
  static constexpr Bytes kMostBuffer = gib(1024);
  static constexpr Bytes kMostInAll = gib(std::uint64_t{1} << 30U);

  explicit TraceBuilder(std::string name) { trace_.name = std::move(name); }

  /// That many are to come, about.
  void expect(std::size_t operations);
  /// The number of the new buffer.
  [[nodiscard]] std::uint32_t allocate(Bytes bytes, std::uint32_t stream);
  /// `buffer` is one that was allocated and not yet freed.
  void free(std::uint32_t buffer, std::uint32_t stream);
  void use(std::uint32_t buffer, std::uint32_t stream);

  [[nodiscard]] Trace& trace() noexcept { return trace_; }
  /// Of a buffer that was allocated.
  [[nodiscard]] Bytes size_of(std::uint32_t buffer) const { return sizes_[buffer]; }
  /// The trace; the builder is done.
  [[nodiscard]] Trace finish();

  /// Refuses a size that no buffer may have.
  static void check_size(Bytes bytes);

 private:
  void add(Action action, std::uint32_t buffer, std::uint32_t stream);

  Trace trace_;
  std::vector<Bytes> sizes_;
  Bytes in_all_;
};

}  // namespace weir::replay
