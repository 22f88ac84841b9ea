#pragma once

// Repeats the small experiments of the chapter on asynchronous computation in Dive into Deep
// Learning (d2l.ai) on the real scheduler: y = x + 1 many times, with one wait each or one in all,
// beside the prediction; and a matrix product, timed at its return and its end.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/setting.hpp"
#include "allocator/pool.hpp"
#include "scheduler/device/device.hpp"
#include "scheduler/scheduler.hpp"

namespace weir {

// Predicts how long `operations` equal operations take, from the times of their stages: the model
// of the chapter on asynchronous computation in Dive into Deep Learning (d2l.ai), and what it
// omits. Pure; times in seconds. Reasons: docs/dispatch.md.

/// The stages of one operation. t1, t2 and t3 are the chapter's names.
struct Stages {
  double submit = 0;  ///< t1: the frontend's call while the device has work, so that it wakes
                      ///< nobody
  double submit_waking = 0;  ///< the same call while the device sleeps and must be woken
  double execute = 0;        ///< t2: the device, in the operation itself
  double device = 0;         ///< the device in all, with fetching and ending the operation
  double back = 0;  ///< t3: the rest of a wait for one operation beyond t1 + t2, with wake-ups
};

enum class SlowerSide : std::uint8_t { kDevice, kFrontend };

/// The chapter's condition: the device is slower if n*t2 > (n-1)*t1.
[[nodiscard]] constexpr SlowerSide slower_side(std::uint64_t operations, const Stages& s) noexcept {
  const auto n = static_cast<double>(operations);
  return n * s.execute > (n - 1) * s.submit ? SlowerSide::kDevice : SlowerSide::kFrontend;
}

/// One wait per operation: nothing overlaps. n*(t1 + t2 + t3)
[[nodiscard]] constexpr double predict_each(std::uint64_t operations, const Stages& s) noexcept {
  return static_cast<double>(operations) * (s.submit + s.execute + s.back);
}

/// One wait in all: after the first operation the device always has work. t1 + n*t2 + t3
[[nodiscard]] constexpr double predict_once(std::uint64_t operations, const Stages& s) noexcept {
  return s.submit + static_cast<double>(operations) * s.execute + s.back;
}

/// Returns whether a device behind a slower frontend sleeps before the next call, which then wakes
/// it: a call takes longer than the device's part of a round trip.
[[nodiscard]] constexpr bool runs_dry(const Stages& s) noexcept {
  return s.submit > s.execute + s.back;
}

/// One wait in all behind a slower frontend: at the end only the last operation is open. n*t1 + t2
/// + t3, with the t1 of a waking call if each call wakes the device.
[[nodiscard]] constexpr double predict_once_frontend(std::uint64_t operations,
                                                     const Stages& s) noexcept {
  const double call = runs_dry(s) ? std::max(s.submit, s.submit_waking) : s.submit;
  return static_cast<double>(operations) * call + s.execute + s.back;
}

/// One wait in all if the sides exclude each other: submitting and executing never overlap. n*(t1 +
/// device) + t3
[[nodiscard]] constexpr double predict_once_in_turns(std::uint64_t operations,
                                                     const Stages& s) noexcept {
  return static_cast<double>(operations) * (s.submit + s.device) + s.back;
}

/// Returns whether one side is so much slower that the other does not slow it. Sides of similar
/// speed contend for the stream's queue with every operation.
[[nodiscard]] constexpr bool sides_apart(const Stages& s) noexcept {
  constexpr double kApart = 8;
  return std::max(s.submit, s.device) > kApart * std::min(s.submit, s.device);
}

/// Which operations to run, and how slow the frontend is.
struct DispatchCase {
  std::uint64_t elements = 1;            ///< of x and y each
  std::chrono::microseconds frontend{};  ///< time the frontend computes before each call
};

/// One round, in seconds. Separate runs measure the stages.
struct DispatchRound {
  Stages stages{};
  double each = 0;    ///< all operations, one wait each
  double once = 0;    ///< all operations, one wait in all
  double issued = 0;  ///< the part of `once` until the last call returned
};

/// Every operation writes the same y, so that the measured time has no allocation or free. The
/// policy is `unbounded`: no batch here could be held back.
class Addition {
 public:
  /// Opens the device. Throws OutOfMemory if it cannot hold x and y. A stop request skips queued
  /// work.
  Addition(const std::string& device, const DispatchCase& what, std::stop_token stop = {});

  /// Measures one round. Returns nullopt if it was stopped.
  [[nodiscard]] std::optional<DispatchRound> round(std::uint64_t operations);
  /// Returns the contents of y.
  [[nodiscard]] std::vector<float> result() { return scheduler_.read(y_); }

 private:
  using Clock = std::chrono::steady_clock;
  /// The device's position on its own clocks.
  struct Mark {
    Clock::time_point time;
    std::chrono::nanoseconds busy{};
  };
  class Gate;
  struct RoundTrips {
    double whole = 0;  ///< submit and wait
    double call = 0;   ///< the part in the call, which wakes the device
    std::uint64_t count = 0;
  };

  void work_in_frontend() const;
  void issue();
  void mark(Mark& mark);
  [[nodiscard]] bool stopped() const { return stop_.stop_requested(); }
  /// Measures t1, t2 and the device's part, on operations that queue up before the device may
  /// start.
  void measure_queued(std::uint64_t operations, Stages& stages);
  void measure_round_trips(std::uint64_t count, RoundTrips& trips);
  [[nodiscard]] double run_each(std::uint64_t operations);
  void run_once(std::uint64_t operations, DispatchRound& round);

  const DispatchCase what_;
  const std::stop_token stop_;
  Mark begin_;  // the device writes it, so it outlives the device
  Mark end_;
  Device device_;
  Pool pool_;
  Scheduler scheduler_;
  Tensor x_;
  Tensor y_;
};

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

struct DispatchSettings {
  Setting<std::string> device = Setting<std::string>::by_default("cpu");
  Setting<std::uint64_t> operations = Setting<std::uint64_t>::by_default(1000);
  Setting<std::uint64_t> rounds = Setting<std::uint64_t>::by_default(15);
  Setting<std::uint64_t> elements_large = Setting<std::uint64_t>::by_default(131072);
  Setting<std::uint64_t> elements_small = Setting<std::uint64_t>::by_default(1);
  /// Microseconds that the slow frontend computes before each call, like an interpreter.
  Setting<std::uint64_t> frontend = Setting<std::uint64_t>::by_default(50);
  Setting<std::uint64_t> matrix = Setting<std::uint64_t>::by_default(1024);  ///< rows and columns

  /// Returns all settings in force.
  [[nodiscard]] std::vector<SettingLine> lines() const;
};

/// Accepts `cpu`. Throws UsageError for other devices: the timed operations are host closures.
[[nodiscard]] std::string parse_dispatch_device(std::string_view name, std::string_view text);

struct CaseFigures {
  DispatchCase what{};
  std::vector<DispatchRound> rounds{};  ///< the completed ones
};

struct DispatchFigures {
  std::vector<CaseFigures> cases{};
  std::vector<ProductRound> products{};
  bool interrupted = false;
};

struct DispatchHooks {
  std::stop_token stop{};  ///< drops the current round, keeps those before it
  std::function<void(const std::string& label, std::uint64_t done, std::uint64_t all)> on_done{};
};

/// Measures. Throws OutOfMemory if the device cannot hold the tensors. Sets the BLAS to one thread.
[[nodiscard]] DispatchFigures measure_dispatch(const DispatchSettings& settings,
                                               const DispatchHooks& hooks = {});

// Reduces the rounds of a case to medians, compares predictions with measurements, and formats them
// as tables for people and as JSON for programs, with the same figures. Pure.

/// One prediction and its measurement; times in seconds, medians over the rounds.
struct Prediction {
  std::string experiment{};  ///< `waiting for each` or `waiting once`
  std::string formula{};
  double measured = 0;
  double predicted = 0;
  double ratio = 0;       ///< median of predicted / measured in the same round
  double low = 0;         ///< lower quartile
  double high = 0;        ///< upper quartile
  bool expected = false;  ///< whether the prediction's assumption holds for these stages
};

struct CaseSummary {
  DispatchCase what{};
  std::uint64_t rounds = 0;
  Stages stages{};  ///< the median of each
  double issued = 0;
  SlowerSide slower = SlowerSide::kDevice;
  bool apart = false;                     ///< sides_apart
  std::vector<Prediction> predictions{};  ///< empty if there is no round
};

[[nodiscard]] CaseSummary summarize(const CaseFigures& figures, std::uint64_t operations);
/// Returns the medians; zeros if there is no round.
[[nodiscard]] ProductRound summarize(const std::vector<ProductRound>& rounds);

/// `wide` adds the columns with details.
[[nodiscard]] std::string format_dispatch(const DispatchSettings& settings,
                                          const DispatchFigures& figures, bool wide = false);
[[nodiscard]] std::string dispatch_json(const DispatchSettings& settings,
                                        const DispatchFigures& figures);

}  // namespace weir
