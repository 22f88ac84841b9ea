#pragma once

// Asks a running program for another budget, by its block (block.hpp).

#include <chrono>
#include <optional>
#include <string>

#include "tools/timeline/live/block_text.hpp"
#include "tools/timeline/live/budget_request.hpp"

namespace weir::timeline {

/// The block of a program, open to ask. Not thread-safe; of several askers of one program, in
/// whatever processes, one is served after the other.
class Asker {
 public:
  /// Opens the block of `program`, as read_live found it. Error of one line where it is not this
  /// user's alone, or not what was found any more.
  explicit Asker(const LiveProgram& program);

  enum class Failure {
    kEnded,   ///< the program has ended
    kSilent,  ///< it did not answer in time
    kBusy,    ///< it answered others all the time
    kBroken,  ///< the block cannot be written, or is cut
  };
  struct Result {
    std::optional<BudgetAnswer> answer{};
    Failure failure = Failure::kSilent;  ///< where there is no answer
  };
  /// Asks, and waits for the answer for at most `patience`. Without an answer the request is taken
  /// back.
  [[nodiscard]] Result ask(const BudgetAsk& ask, std::chrono::nanoseconds patience);

 private:
  enum class LockResult { kLocked, kTaken, kFailed };
  [[nodiscard]] LockResult lock(bool wanted) const noexcept;
  [[nodiscard]] bool write(const LiveRequest& request) const noexcept;
  [[nodiscard]] std::optional<BudgetAnswer> answer_to(std::uint64_t serial) const noexcept;

  const OpenFolder file_;
};

}  // namespace weir::timeline
