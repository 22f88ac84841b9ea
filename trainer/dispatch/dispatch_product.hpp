#pragma once

// A matrix product as the frontend sees it: the call returns at once, the result comes later.

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "allocator/pool.hpp"
#include "scheduler/device/device.hpp"
#include "scheduler/scheduler.hpp"

namespace weir {

/// One round, in seconds.
struct ProductRound {
  double returned = 0;        ///< one call, without a wait
  double completed = 0;       ///< the same call, until the product is ready
  double many_returned = 0;   ///< kMany calls
  double many_completed = 0;  ///< the same calls plus one wait
};

/// Computes b = a * a with square matrices on its own device.
class Product {
 public:
  static constexpr int kMany = 10;

  /// Opens the device, sets the BLAS to one thread and computes once. Throws OutOfMemory if the
  /// device cannot hold both matrices. A stop request skips queued work.
  Product(const std::string& device, std::uint64_t rows, std::stop_token stop = {});

  /// Measures one round. Returns nullopt if it was stopped.
  [[nodiscard]] std::optional<ProductRound> round();

 private:
  /// Seconds until `calls` calls returned, and until the product is ready.
  struct Times {
    double returned = 0;
    double completed = 0;
  };
  [[nodiscard]] Times run(int calls);
  void issue();

  const std::uint64_t rows_;
  const std::stop_token stop_;
  Device device_;
  Pool pool_;
  Scheduler scheduler_;
  Tensor a_;
  Tensor b_;
};

}  // namespace weir
