#pragma once

// Writes checkpoints beside the training. At the end of a batch the tensors are copied within the
// device; a thread then reads the copies back and writes the file, while the next batches run. What
// has no room for its copy is read from the training's own tensors first, and the training waits
// for that part.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "allocator/base/condition.hpp"
#include "allocator/base/mutex.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/tensor.hpp"
#include "tools/program/output_file.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/checkpoint/checkpoint_reader.hpp"

namespace weir {

/// Every so many batches, after so much time, or whichever comes first. Zero: not for this reason.
struct CheckpointSchedule {
  std::uint64_t batches = 0;
  std::chrono::nanoseconds time{};
};

/// Returns whether a checkpoint is due `batches` whole batches and `time` after the last one was.
[[nodiscard]] constexpr bool due(const CheckpointSchedule& schedule, std::uint64_t batches,
                                 std::chrono::nanoseconds time) noexcept {
  if (batches == 0) return false;  // nothing new
  return (schedule.batches != 0 && batches >= schedule.batches) ||
         (schedule.time.count() != 0 && time >= schedule.time);
}

/// Fills `out` with the elements of a section from `first` on. Called for all sections in order,
/// and for each from its first element to its last.
using ReadPiece = std::function<void(std::size_t section, std::size_t first, std::span<float> out)>;

/// Replaces the file's contents by a checkpoint, holding one chunk (4 MiB) of it in memory. Throws
/// what `read` throws, and UsageError if the file cannot be written; the old contents stay then.
void write_checkpoint(OutputFile& file, const CheckpointHeader& header, const ReadPiece& read);

/// A tensor by the name of its section.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Returns their sections.
[[nodiscard]] std::vector<Section> sections_of(const std::vector<NamedTensor>& tensors);

/// What a run's tensors hold now, whatever is submitted later.
struct Snapshot {
  /// In the order of the sections. The first `held` are the run's own, for whose copies there was
  /// no room: nothing may be submitted that writes them before they are read.
  std::vector<Tensor> tensors;
  std::size_t held = 0;
};

/// Submits copies of the tensors within the device as one batch of the kind `checkpoint`, the last
/// tensors first. Copies as many as leave room in the budget for two batches of the kind `beside`,
/// so that the training never fails for them; none before the first such batch has ended. Waits for
/// admission only. Call it with no batch open on this thread.
[[nodiscard]] Snapshot take_snapshot(Scheduler& scheduler, const std::vector<NamedTensor>& tensors,
                                     std::string_view beside);

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

/// Refuses a file of other settings or tensors than those of `run`, then fills the run's tensors
/// from it and waits until they are. Its position is the reader's: `number`, `text`. Throws
/// UsageError for a damaged file; then the tensors hold parts of it, and the run must not go on.
void resume(const CheckpointReader& file, Scheduler& scheduler, const CheckpointState& run);

// Keeps a checkpoint's file for one run, from its begin to its end.

/// Locks FILE.lock beside the file that a path leads to: each checkpoint replaces FILE itself, and
/// with it a lock on it. FILE.lock says whose it is. One that a killed run left is not locked any
/// more, and is used again.
class CheckpointLock {
 public:
  /// Throws UsageError with `option` and the path if another run has the file, or if its file
  /// system has no locks. Locks nothing where no file is replaced (no path, a device, a pipe) or
  /// where none can be: who writes refuses that.
  CheckpointLock(const std::string& option, const std::string& path, LockCall lock = flock);
  /// Removes FILE.lock.
  ~CheckpointLock();
  CheckpointLock(const CheckpointLock&) = delete;
  CheckpointLock& operator=(const CheckpointLock&) = delete;

 private:
  std::string name_;
  int descriptor_ = -1;
};

}  // namespace weir
