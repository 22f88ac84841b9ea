#include "trainer/checkpoint/checkpointer.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/time_after.hpp"
#include "trainer/checkpoint/checkpoint_writer.hpp"

namespace weir {
namespace {

CheckpointHeader header_of(const CheckpointState& state) {
  CheckpointHeader header{.settings = state.settings,
                          .position = state.position,
                          .sections = sections_of(state.tensors)};
  (void)encode_header(header);  // refuses it here, and not on the thread
  return header;
}

}  // namespace

Checkpointer::Checkpointer(Scheduler& scheduler, CheckpointOptions options)
    : scheduler_(scheduler),
      options_(std::move(options)),
      last_due_(options_.begun.value_or(0)),
      last_time_(options_.now()),
      file_(options_.option, options_.path, OutputFile::Beside::kOneName),
      in_file_(options_.begun),
      thread_([this] { serve(); }) {}

Checkpointer::~Checkpointer() {
  {
    const Lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Checkpointer::after_batch(std::uint64_t done, const State& state) {
  const Time now = options_.now();
  if (!due(options_.schedule, done - last_due_, now - last_time_)) return;
  last_due_ = done;
  last_time_ = now;
  {
    const Lock lock(mutex_);
    if (busy_) {
      ++statistics_.skipped;
      return;
    }
  }
  const CheckpointState taken = state();
  Job job{.done = done, .header = header_of(taken), .snapshot = {}};
  job.snapshot = take_snapshot(scheduler_, taken.tensors, options_.beside);
  const std::size_t held = job.snapshot.held;
  hand_over(std::move(job));
  Lock lock(mutex_);
  while (busy_ && reading_ < held) changed_.wait(lock);
  const std::chrono::nanoseconds delay = options_.now() - now;
  if (held != 0) ++statistics_.held;
  statistics_.delay += delay;
  statistics_.most_delay = std::max(statistics_.most_delay, delay);
}

bool Checkpointer::finish(std::uint64_t done, const State& state) {
  {
    Lock lock(mutex_);
    give_up_ = time_after(options_.now(), options_.most_at_end);
    while (busy_) changed_.wait(lock);
    if (in_file_ == done) return true;
  }
  // No batch comes any more: the tensors need no copies.
  const CheckpointState taken = state();
  Job job{.done = done, .header = header_of(taken), .snapshot = {}};
  for (const NamedTensor& named : taken.tensors) job.snapshot.tensors.push_back(named.tensor);
  hand_over(std::move(job));
  Lock lock(mutex_);
  while (busy_) changed_.wait(lock);
  return in_file_ == done;
}

CheckpointStatistics Checkpointer::statistics() const {
  const Lock lock(mutex_);
  return statistics_;
}

void Checkpointer::hand_over(Job job) {
  {
    const Lock lock(mutex_);
    job_ = std::move(job);
    busy_ = true;
    reading_ = 0;
  }
  changed_.notify_all();
}

void Checkpointer::serve() {
  for (;;) {
    Job job;
    {
      Lock lock(mutex_);
      while (!ends_ && !job_) changed_.wait(lock);
      if (!job_) return;
      job = *std::exchange(job_, std::nullopt);
    }
    write(job);
  }
}

void Checkpointer::write(Job& job) {
  std::string failure;
  try {
    write_checkpoint(file_, job.header,
                     [&](std::size_t section, std::size_t first, std::span<float> out) {
                       begin_chunk(job, section);
                       scheduler_.read(job.snapshot.tensors[section], first, out);
                     });
  } catch (const std::exception& error) {
    failure = error.what();
  }
  job.snapshot.tensors.clear();  // their memory is free before the next may come
  if (!failure.empty()) warn(job, failure);
  {
    const Lock lock(mutex_);
    busy_ = false;
    if (failure.empty()) {
      ++statistics_.written;
      statistics_.last = in_file_ = job.done;
    } else {
      ++statistics_.failed;
    }
  }
  changed_.notify_all();
}

void Checkpointer::begin_chunk(Job& job, std::size_t section) {
  if (section != 0) job.snapshot.tensors[section - 1] = {};  // is read
  {
    const Lock lock(mutex_);
    if (ends_) throw Error("the run ends");
    if (give_up_ && options_.now() >= *give_up_) {
      throw Error("it took longer than a run may take at its end");
    }
    if (reading_ == section) return;
    reading_ = section;
  }
  changed_.notify_all();
}

void Checkpointer::warn(const Job& job, const std::string& failure) const {
  std::string text = "no checkpoint of batch " + std::to_string(job.done) + ": " +
                     failure.substr(0, failure.find('\n'));
  std::optional<std::uint64_t> in_file;
  {
    const Lock lock(mutex_);
    in_file = in_file_;
  }
  if (in_file) text += "; the file keeps that of batch " + std::to_string(*in_file);
  log(LogLevel::kWarn, text);
}

}  // namespace weir
