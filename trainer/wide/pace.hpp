#pragma once

// How a run gets on: a line every so many batches. Losses and hits are summed up on the device and
// read only for a line, after the device has passed its last batch, so a line holds nothing back.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

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
  Pace(Operations& operations, std::uint64_t every, std::uint64_t first, OnLine on_line);

  /// Sets the time of the lines to zero.
  void start();
  /// Adds a batch's loss [1] and hits [1] to the sums. Inside the batch.
  void add(const Tensor& loss, const Tensor& hits);
  /// Call after each batch: prints the lines that are complete.
  void after_batch(std::uint64_t rows);
  /// Prints the rest. Waits for the device.
  void finish();

  /// Returns the mean loss of all batches in lines, and the share of their rows that were hits.
  [[nodiscard]] std::optional<double> mean_loss() const;
  [[nodiscard]] std::optional<double> hit_share() const;
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
  [[nodiscard]] Sums fresh_sums();
  void print(const Sums& sums);

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
