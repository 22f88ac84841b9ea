#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tools/timeline/live/block.hpp"
#include "tools/timeline/live/folder.hpp"

namespace weir::timeline {

/// Callbacks for requests from outside. The publisher's thread calls them without holding a lock.
struct LiveListener {
  /// Null: the process's budget is fixed.
  BudgetAnswer (*set_budget)(const BudgetAsk& ask) noexcept = nullptr;
  /// Called before each sample.
  void (*look)() noexcept = nullptr;
};

/// Publishes the figures of this process's sources for `weir top` and `weir ps`, and answers `weir
/// set`. Its thread takes a sample every kLivePeriodNs. It does not disturb the program: the thread
/// takes no signals, no descriptor stays open, and failures are only logged at level `debug`. A
/// forked child publishes nothing until it calls begin. Thread-safe.
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

  /// Starts the thread, which makes the block later. Does nothing the second time.
  void start() noexcept;
  /// Removes the block and ends the thread, for good. Waits up to a second for a running sample.
  /// Does nothing in a forked child.
  void stop() noexcept;
  /// Adds the name of a device that the process uses. Ignores known names. Call from any thread,
  /// before or after `start`.
  void add_device(const std::string& name);
  /// Waits for `count` samples. Returns false if publishing failed.
  [[nodiscard]] bool wait_for_samples(std::uint64_t count);
  /// The block's file; empty before it exists.
  [[nodiscard]] std::string path() const;

  /// Returns this process's own publisher and starts it unless the setting forbids it. The first
  /// call makes it; its block is removed at exit. Returns null if it is off or memory is short.
  static Publisher* begin(const PublishSetting& setting, const Environment& environment,
                          LiveListener listener = {}) noexcept;
  /// Stops this process's own publisher. Does nothing if there is none, in a child, or if exit()
  /// has interrupted a call of the thread.
  static void end() noexcept;

 private:
  struct State;
  static void* run(void* held);

  const int pid_;
  const std::shared_ptr<State> state_;  // shared with the thread, which may outlast the
                                        // destructor's wait
};

}  // namespace weir::timeline
