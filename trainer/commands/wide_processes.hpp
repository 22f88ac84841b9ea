#pragma once

// This process as one of the ranks of `weir-train wide`.

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/ranks/agree.hpp"
#include "trainer/ranks/communicator.hpp"
#include "trainer/ranks/launch.hpp"
#include "trainer/run/train.hpp"
#include "trainer/wide/wide_settings.hpp"
#include "trainer/wide/wide_train.hpp"

namespace weir {

/// Returns the device of a rank: a GPU without a number becomes that of its place on its machine.
/// Throws UsageError if there is no such GPU.
[[nodiscard]] Setting<std::string> device_of_rank(Setting<std::string> chosen,
                                                  const Launch& launch);

/// Leaves out the files that rank 0 alone writes. A file whose name has %r or %p is each process's
/// own, and stays.
void be_quiet(WideSettings& settings);

/// Meets the other ranks only to say that this one cannot begin, so that all end at once. Throws
/// UsageError on rank 0, and returns the exit code on the others.
[[nodiscard]] int refuse_together(const Launch& launch, const std::string& refusal);

/// The ranks, from their meeting to their end.
class WideProcesses {
 public:
  /// Meets the other ranks, and compares the fields. An interrupt ends all ranks from now on: one
  /// that stopped alone would leave the others waiting; a rank that has no others stops as a
  /// process alone. Throws as open_communicator does, and on rank 0 UsageError for a difference.
  WideProcesses(const WideSettings& settings, const Launch& launch, std::vector<AgreedField> fields,
                const std::stop_token& stop);

  /// False on other ranks than 0 if there is a difference. Then nothing more may be called.
  [[nodiscard]] bool agreed() const noexcept { return agreed_; }
  /// Whether this rank prints and writes.
  [[nodiscard]] bool speaks() const noexcept { return speaks_; }
  [[nodiscard]] WideHooks hooks() const { return {.stop = stop_, .ranks = ranks_.get()}; }
  /// Waits for the other ranks. Call it after a run; one that did not finish ends all ranks.
  void finish(const TrainResult& result);

 private:
  const bool speaks_;
  std::unique_ptr<Communicator> ranks_;  ///< null without agreement
  bool agreed_ = true;
  std::stop_token stop_;  ///< of a rank that has no others
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace weir
