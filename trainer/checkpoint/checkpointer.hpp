#pragma once

// Writes checkpoints beside the training. At the end of a batch the tensors are copied within the
// device; a thread then reads the copies back and writes the file, while the next batches run. What
// has no room for its copy is read from the training's own tensors first, and the training waits
// for that part.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "allocator/base/condition.hpp"
#include "allocator/base/mutex.hpp"
#include "scheduler/scheduler.hpp"
#include "tools/program/output_file.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/checkpoint/checkpoint_schedule.hpp"
#include "trainer/checkpoint/snapshot.hpp"

namespace weir {

/// What a run is at the end of a batch.
struct CheckpointState {
  Figures settings;  ///< as CheckpointHeader's
  Figures position;
  std::vector<NamedTensor> tensors;  ///< each written by an operation before
};

struct CheckpointOptions {
  std::string option = "--checkpoint";  ///< what named the file
  std::string path;
  CheckpointSchedule schedule{};
  std::string beside = "train";          ///< kind of the batches that run meanwhile
  std::optional<std::uint64_t> begun{};  ///< batches in the file that the run resumed from
  /// The longest that `finish` goes on writing. It is checked between chunks of 4 MiB.
  std::chrono::nanoseconds most_at_end = std::chrono::minutes(5);
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

struct CheckpointStatistics {
  std::uint64_t written = 0;
  std::uint64_t skipped = 0;  ///< due while one was being written
  std::uint64_t failed = 0;   ///< not written: each was a warning in the log
  std::uint64_t held = 0;     ///< for which the training waited, since not all copies had room
  std::optional<std::uint64_t> last;      ///< batches in the file, if this run wrote it
  std::chrono::nanoseconds delay{};       ///< of the training's thread, in all
  std::chrono::nanoseconds most_delay{};  ///< by one checkpoint
};

/// Owns the writing thread. The calls come from one thread with no batch open; `statistics` from
/// any. A checkpoint that cannot be written (a full disk, a failed operation) is a warning and a
/// count; the file keeps the one before.
class Checkpointer {
 public:
  using State = std::function<CheckpointState()>;

  /// Checks that the file can be written, and removes what a killed run left beside it. Throws
  /// UsageError. The scheduler must outlive it.
  Checkpointer(Scheduler& scheduler, CheckpointOptions options);
  /// Gives up what is being written, at the next chunk.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// Call after batch number `done` of the whole training is closed. Begins a checkpoint if one is
  /// due, and asks `state` only then. Waits only if not all copies have room. Throws UsageError for
  /// a state that cannot be in a header.
  void after_batch(std::uint64_t done, const State& state);

  /// Ends the run's checkpoints: completes the one being written, and then writes one of now unless
  /// that is in the file. Returns whether it is. Waits at most `most_at_end` and one chunk's time.
  [[nodiscard]] bool finish(std::uint64_t done, const State& state);

  [[nodiscard]] CheckpointStatistics statistics() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Job {
    std::uint64_t done = 0;
    CheckpointHeader header;
    Snapshot snapshot;
  };

  void hand_over(Job job);
  void serve();
  void write(Job& job);
  /// Throws Error if it is to be given up.
  void begin_chunk(Job& job, std::size_t section);
  void warn(const Job& job, const std::string& failure) const;

  Scheduler& scheduler_;
  const CheckpointOptions options_;
  std::uint64_t last_due_;
  Time last_time_;
  OutputFile file_;  ///< used by the thread

  mutable Mutex mutex_{LockRank::kLeaf};
  Condition changed_;
  std::optional<Job> job_ WEIR_GUARDED_BY(mutex_);   ///< not yet taken by the thread
  bool busy_ WEIR_GUARDED_BY(mutex_) = false;        ///< from handing over to the end
  std::size_t reading_ WEIR_GUARDED_BY(mutex_) = 0;  ///< sections before it are read
  bool ends_ WEIR_GUARDED_BY(mutex_) = false;
  std::optional<Time> give_up_ WEIR_GUARDED_BY(mutex_);
  std::optional<std::uint64_t> in_file_ WEIR_GUARDED_BY(mutex_);
  CheckpointStatistics statistics_ WEIR_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace weir
