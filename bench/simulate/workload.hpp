#pragma once

// What programs do: loads and batches, by numbers.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "bench/simulate/jitter.hpp"

namespace weir::simulate {

/// Which bound a workload's throughput has to keep; see bounds.cpp.
enum class Goal : std::uint8_t { kSteady, kBursts, kNewKinds, kHints, kFair, kOther, kTooLarge };

/// A kind of program. Times that are numbers are parts of `compute`.
struct Workload {
  std::string_view name;
  std::string_view about;
  Goal goal = Goal::kOther;
  Time compute = std::chrono::milliseconds(2);  ///< device time of a batch
  double load = 0.1;                            ///< host time before a batch
  double copy = 0.2;                            ///< of its inputs to the device, on the copy stream
  double long_copy = 0;                         ///< every tenth copy; 0: as the others
  double submit = 0.005;                        ///< host time from its beginning to its end
  double collective = 0;                ///< on a second stream, from the middle of its compute
  std::uint64_t collective_every = 1;   ///< batches
  Bytes inputs = mib(128);              ///< held from the beginning until it is computed
  Bytes work = mib(384);                ///< working set of its compute
  Bytes retained{};                     ///< outputs that are kept,
  std::uint64_t retain = 0;             ///< for so many batches
  double sigma = 0;                     ///< sizes and times vary by a log-normal factor, up to 8
  std::uint64_t burst = 0;              ///< batches between two pauses
  Time pause{};                         ///< on the host, before each burst
  double other_kind = 0;                ///< every second batch is of a kind so many times as large
  std::uint64_t new_kind = 0;           ///< a new kind after so many batches
  double hint = 0;                      ///< hint of each batch, in parts of the truth
  double too_large = 0;                 ///< every tenth batch needs so many budgets
  std::vector<double> producers = {1};  ///< threads, and how large their batches are
};

/// All workloads of the table.
[[nodiscard]] std::span<const Workload> workloads();

/// One batch.
struct BatchShape {
  std::uint64_t kind = 0;  ///< producers' kinds differ
  Bytes inputs{};
  Bytes work{};
  Bytes retained{};
  std::optional<Bytes> hint{};
  Time load{};  ///< with the pause before it
  Time submit{};
  Time copy{};
  Time compute{};
  Time collective{};

  [[nodiscard]] Bytes peak() const { return inputs + work + retained; }
};

/// Draws the batches of one producer. The same seed gives the same batches under each policy.
class Batches {
 public:
  /// `budget` is only for batches that are too large for it.
  Batches(const Workload& workload, std::size_t producer, std::uint64_t seed, Bytes budget);

  [[nodiscard]] BatchShape next();

 private:
  const Workload& workload_;
  const std::size_t producer_;
  const Bytes budget_;
  Random random_;
  std::uint64_t index_ = 0;
};

/// What the largest of the first batches hold, apart from those that are too large.
struct Needs {
  Bytes one;  ///< one batch, and what is retained: the least budget
  Bytes two;  ///< inputs twice and one working set, and what is retained
};
[[nodiscard]] Needs needs_of(const Workload& workload, std::uint64_t batches, std::uint64_t seed);

}  // namespace weir::simulate
