#pragma once

// Requests another budget from a running program through its block (block.hpp).

#include <chrono>
#include <optional>
#include <string>

#include "tools/timeline/live/block.hpp"
#include "tools/timeline/live/block_text.hpp"

namespace weir::timeline {

/// An open block of a program. Not thread-safe. Several askers of one program, in any processes,
/// are served one after another.
class Asker {
 public:
  /// Opens the block of `program`, as found by read_live. Throws Error of one line if it is not
  /// owned by this user alone, or has changed since.
  explicit Asker(const LiveProgram& program);

  enum class Failure {
    kEnded,   ///< the program has ended
    kSilent,  ///< no answer in time
    kBusy,    ///< busy answering others the whole time
    kBroken,  ///< the block cannot be written, or is truncated
  };
  struct Result {
    std::optional<BudgetAnswer> answer{};
    Failure failure = Failure::kSilent;  ///< valid without an answer
  };
  /// Sends a request and waits for the answer for at most `patience`. Withdraws the request if
  /// there is no answer.
  [[nodiscard]] Result ask(const BudgetAsk& ask, std::chrono::nanoseconds patience);

 private:
  enum class LockResult { kLocked, kTaken, kFailed };
  [[nodiscard]] LockResult lock(bool wanted) const noexcept;
  [[nodiscard]] bool write(const LiveRequest& request) const noexcept;
  [[nodiscard]] std::optional<BudgetAnswer> answer_to(std::uint64_t serial) const noexcept;

  const OpenFolder file_;
};

}  // namespace weir::timeline
