#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tools/timeline/live/block.hpp"
#include "tools/timeline/live/budget_request.hpp"
#include "tools/timeline/live/folder.hpp"

namespace weir::timeline {

/// What a process does for who looks at it from outside. Called by the publisher's thread, under no
/// lock.
struct LiveListener {
  /// Null: the process's budget is fixed.
  BudgetAnswer (*set_budget)(const BudgetAsk& ask) noexcept = nullptr;
  /// Before each sample.
  void (*look)() noexcept = nullptr;
};

/// Publishes what this process's sources say of themselves, for `weir top` and `weir ps`, and
/// answers `weir set`. A thread of its own takes a sample every kLivePeriodNs. It is never in the
/// program's way: no signal reaches the thread, no descriptor stays open, and whatever fails is a
/// line at the level `debug` and nothing else. A child after a fork publishes nothing until it
/// begins itself. Thread-safe.
class Publisher {
 public:
  struct Options {
    std::vector<LiveFolder> folders;
    std::string program;  ///< empty: this process's command line
    std::chrono::nanoseconds period{kLivePeriodNs};
    LiveListener listener{};
  };

  explicit Publisher(Options options);
  ~Publisher() { stop(); }
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// Starts the thread. The block is there some time later. Does nothing the second time.
  void start() noexcept;
  /// Removes the block and ends the thread, for good. Waits for a sample under way, at most a
  /// second. Does nothing in a child of the process.
  void stop() noexcept;
  /// Names a device that the process uses; once, though it is told again. From any thread, before
  /// or after `start`.
  void add_device(const std::string& name);
  /// Waits until `count` samples were taken, or publishing failed; false if it failed.
  [[nodiscard]] bool wait_for_samples(std::uint64_t count);
  /// The block's file; empty before there is one.
  [[nodiscard]] std::string path() const;

  /// The process's own publisher, started if the setting does not say otherwise. The first call
  /// makes it, and its block is removed at exit. Null where it is off, or memory is short.
  static Publisher* begin(const PublishSetting& setting, const Environment& environment,
                          LiveListener listener = {}) noexcept;
  /// Stops the process's own. Does nothing where there is none, in a child, and where exit() has
  /// interrupted a call of the thread.
  static void end() noexcept;

 private:
  struct State;
  static void* run(void* held);

  const int pid_;
  const std::shared_ptr<State> state_;  // the thread's too: it may outlast a destructor that waited
};

}  // namespace weir::timeline
