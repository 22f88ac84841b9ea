#pragma once

// How a run gets on: a line every so many batches. Losses and hits are summed up on the device and
// read only for a line, after the device has passed its last batch, so a line holds nothing back.

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "scheduler/tensor.hpp"
#include "trainer/model/operations.hpp"
#include "trainer/wide/wide_train.hpp"

namespace weir {

/// One thread at a time, with no batch open unless it says so.
class Pace {
 public:
  using OnLine = std::function<void(const PaceLine&)>;

  /// A line after each `every` batches, and one for the rest at the end. `first` batches are done
  /// before this run. `operations` must outlive it.
  Pace(Operations& operations, std::uint64_t every, std::uint64_t first, OnLine on_line)
      : operations_(operations), every_(every), on_line_(std::move(on_line)), sums_(fresh_sums()) {
    sums_.batch = first;
    start();
  }

  /// Sets the time of the lines to zero.
  void start() {
    started_ = Clock::now();
    resident_before_ = resident_memory().count;
  }
  /// Adds a batch's loss [1] and hits [1] to the sums. Inside the batch.
  void add(const Tensor& loss, const Tensor& hits) {
    operations_.accumulate(sums_.loss, loss);
    operations_.accumulate(sums_.hits, hits);
  }
  /// Call after each batch: prints the lines that are complete.
  void after_batch(std::uint64_t rows) {
    ++sums_.batch;
    ++sums_.batches;
    sums_.rows += rows;
    if (sums_.batch % every_ == 0) {
      Sums fresh = fresh_sums();
      fresh.batch = sums_.batch;
      pending_.push_back(std::exchange(sums_, std::move(fresh)));
    }
    Scheduler& scheduler = operations_.scheduler();
    while (!pending_.empty() && scheduler.reached(scheduler.written(pending_.front().hits))) {
      print(pending_.front());
      pending_.pop_front();
    }
  }
  /// Prints the rest. Waits for the device.
  void finish() {
    for (; !pending_.empty(); pending_.pop_front()) print(pending_.front());
    if (sums_.batches != 0) print(sums_);
    sums_.batches = 0;
  }

  /// Returns the mean loss of all batches in lines, and the share of their rows that were hits.
  [[nodiscard]] std::optional<double> mean_loss() const { return share(loss_, batches_); }
  [[nodiscard]] std::optional<double> hit_share() const { return share(hits_, rows_); }
  /// Returns the bytes that were read from the device.
  [[nodiscard]] Bytes read_back() const noexcept { return read_back_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Sums {
    Tensor loss;
    Tensor hits;
    std::uint64_t batch = 0;  ///< its last
    std::uint64_t batches = 0;
    std::uint64_t rows = 0;
  };
  [[nodiscard]] Sums fresh_sums() {
    return {.loss = operations_.filled({1}, 0, "loss total"),
            .hits = operations_.filled({1}, 0, "hits total")};
  }
  void print(const Sums& sums) {
    const double loss = operations_.scheduler().read(sums.loss).front();
    const double hits = operations_.scheduler().read(sums.hits).front();
    read_back_ += sums.loss.shape().bytes() + sums.hits.shape().bytes();
    loss_ += loss;
    hits_ += hits;
    batches_ += sums.batches;
    rows_ += sums.rows;
    if (!on_line_) return;
    on_line_({.batch = sums.batch,
              .seconds = std::chrono::duration<double>(Clock::now() - started_).count(),
              .mean_loss = loss / static_cast<double>(sums.batches),
              .hit_share = hits / static_cast<double>(sums.rows),
              .increased_bytes = static_cast<std::int64_t>(resident_memory().count) -
                                 static_cast<std::int64_t>(resident_before_)});
  }
  [[nodiscard]] static std::optional<double> share(double part, std::uint64_t count) {
    return count == 0 ? std::nullopt : std::optional(part / static_cast<double>(count));
  }
  /// Returns the physical memory of this process now; zero if that cannot be read.
  [[nodiscard]] static Bytes resident_memory() noexcept {
    std::FILE* const file = std::fopen("/proc/self/statm", "re");
    if (file == nullptr) return {};
    unsigned long all = 0;
    unsigned long resident = 0;  // in pages, proc(5)
    const int read = std::fscanf(file, "%lu %lu", &all, &resident);
    (void)std::fclose(file);
    if (read != 2) return {};
    return {resident * static_cast<unsigned long>(sysconf(_SC_PAGESIZE))};
  }

  Operations& operations_;
  const std::uint64_t every_;
  const OnLine on_line_;
  Sums sums_;                 ///< of the batches after the last line
  std::deque<Sums> pending_;  ///< whose last batch the device may not have passed
  Clock::time_point started_ = Clock::now();
  std::uint64_t resident_before_ = 0;
  Bytes read_back_;
  double loss_ = 0;  ///< of all lines
  double hits_ = 0;
  std::uint64_t batches_ = 0;
  std::uint64_t rows_ = 0;
};

}  // namespace weir
