#pragma once

// Recordings for tests of formats: random ones of every kind, and one like a training run.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::testing {

/// Texts by their places; text 0 is empty.
class VectorNames final : public timeline::Names {
 public:
  explicit VectorNames(std::vector<std::string> texts) : texts_(std::move(texts)) {}
  [[nodiscard]] std::string_view text(std::uint32_t number) const override {
    return number < texts_.size() ? std::string_view(texts_[number]) : std::string_view();
  }
  [[nodiscard]] const std::vector<std::string>& texts() const noexcept { return texts_; }

 private:
  std::vector<std::string> texts_;
};

class StringSink final : public timeline::ByteSink {
 public:
  void append(std::string_view bytes) noexcept override { bytes_.append(bytes); }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

/// Possible names of programs, some difficult for formats.
[[nodiscard]] std::vector<std::string> hostile_names();
/// Records of every kind with fields of every size, by `begin`.
[[nodiscard]] std::vector<timeline::Process> random_processes(std::uint64_t seed,
                                                              std::size_t records);
/// The records of a training run: for each operation a submission, an execution, 1.5 allocations
/// and as many frees; batches; a pool with consistent accounting.
[[nodiscard]] timeline::Process training_run(std::uint64_t seed, std::size_t operations);
/// A profiler's records of a GPU: two launches, a graph of two kernels, a call that starts nothing,
/// a kernel without a call, and an operation with the number of a launch. Then a second window with
/// the same numbers: a launch, and a kernel without a call.
[[nodiscard]] timeline::Process profiled_run();
/// Writes all of it to one file, a flush at a time as a recorder does.
void write_all(const std::vector<timeline::Process>& processes, timeline::Writer& writer);

}  // namespace weir::testing
