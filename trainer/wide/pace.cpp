#include "trainer/wide/pace.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "allocator/base/bytes.hpp"

namespace weir {
namespace {

/// Returns the physical memory of this process now; zero if that cannot be read.
Bytes resident_memory() noexcept {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return {};
  unsigned long all = 0;
  unsigned long resident = 0;  // in pages, proc(5)
  const int read = std::fscanf(file, "%lu %lu", &all, &resident);
  (void)std::fclose(file);
  return read == 2 ? Bytes{resident * static_cast<unsigned long>(sysconf(_SC_PAGESIZE))} : Bytes{};
}

}  // namespace

Pace::Pace(Operations& operations, std::uint64_t every, std::uint64_t first, OnLine on_line)
    : operations_(operations), every_(every), on_line_(std::move(on_line)), sums_(fresh_sums()) {
  sums_.batch = first;
  start();
}

void Pace::start() {
  started_ = Clock::now();
  resident_before_ = resident_memory().count;
}

Pace::Sums Pace::fresh_sums() {
  return {.loss = operations_.filled({1}, 0, "loss total"),
          .hits = operations_.filled({1}, 0, "hits total")};
}

void Pace::add(const Tensor& loss, const Tensor& hits) {
  operations_.accumulate(sums_.loss, loss);
  operations_.accumulate(sums_.hits, hits);
}

void Pace::after_batch(std::uint64_t rows) {
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

void Pace::finish() {
  for (; !pending_.empty(); pending_.pop_front()) print(pending_.front());
  if (sums_.batches != 0) print(sums_);
  sums_.batches = 0;
}

void Pace::print(const Sums& sums) {
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

std::optional<double> Pace::mean_loss() const {
  if (batches_ == 0) return std::nullopt;
  return loss_ / static_cast<double>(batches_);
}

std::optional<double> Pace::hit_share() const {
  if (rows_ == 0) return std::nullopt;
  return hits_ / static_cast<double>(rows_);
}

}  // namespace weir
