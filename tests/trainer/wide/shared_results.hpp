#pragma once

// What the ranks of shared_program wrote, put together, and compared with one process alone.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "shared_cases.hpp"
#include "trainer/jobs.hpp"
#include "trainer/temporary_directory.hpp"
#include "trainer/wide/wide_train.hpp"

namespace weir::testing {

using SharedWeights = std::vector<std::vector<float>>;

/// Reads a rank's weights, whose extents are those of its part.
class RankWeights {
 public:
  explicit RankWeights(const std::string& file) : bytes_(read_file(file)) {}
  [[nodiscard]] std::vector<float> next(std::size_t count) {
    EXPECT_LE(at_ + count * sizeof(float), bytes_.size());
    std::vector<float> values(count);
    std::memcpy(values.data(), bytes_.data() + at_, count * sizeof(float));
    at_ += count * sizeof(float);
    return values;
  }
  ~RankWeights() { EXPECT_EQ(at_, bytes_.size()); }
  RankWeights(RankWeights&&) = default;

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

/// Appends this rank's columns to those of the ranks before, row by row.
inline void append_columns(std::vector<float>& all, const std::vector<float>& own,
                           std::size_t rows) {
  std::vector<float> joined;
  for (std::size_t r = 0; r < rows; ++r) {
    for (const std::vector<float>* part : std::vector<const std::vector<float>*>{&all, &own}) {
      const std::size_t columns = part->size() / rows;
      for (std::size_t c = 0; c < columns; ++c) joined.push_back((*part)[r * columns + c]);
    }
  }
  all = std::move(joined);
}

/// Returns the whole network of the ranks' files. What each rank has must be the same on all.
[[nodiscard]] inline SharedWeights read_shared(const SharedCase& one, const std::string& folder,
                                               int ranks) {
  const std::vector<std::size_t> widths = one.settings.widths();
  const bool model = one.settings.parallel.value == Parallel::kModel;
  SharedWeights all((widths.size() - 1) * 2);
  for (int rank = 0; rank < ranks; ++rank) {
    RankWeights file(folder + "/" + one.name + "." + std::to_string(rank));
    for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
      const bool last = l + 2 == widths.size();
      const auto part = [&](std::size_t total) { return shard_of(total, rank, ranks).count; };
      const std::size_t rows = model && l == 0 ? part(widths[l]) : widths[l];
      const std::size_t columns = model && last ? part(widths[l + 1]) : widths[l + 1];
      for (const bool bias : {false, true}) {
        std::vector<float>& whole = all[2 * l + (bias ? 1 : 0)];
        const std::size_t height = bias ? 1 : rows;
        const std::vector<float> own = file.next(height * columns);
        if (model && l == 0 && !bias) {
          whole.insert(whole.end(), own.begin(), own.end());
        } else if (model && last) {
          append_columns(whole, own, height);
        } else if (rank == 0) {
          whole = own;
        } else {
          EXPECT_EQ(whole, own) << one.name << ": rank " << rank << " differs in layer " << l;
        }
      }
    }
  }
  return all;
}

/// The figures that a rank prints; see shared_program.cpp.
struct SharedFigures {
  std::string name;
  int rank = 0;
  double mean_loss = 0;
  double hit_share = 0;
  double test_accuracy = 0;
  std::uint64_t test_images = 0;
  std::uint32_t skipped_steps = 0;
  std::uint64_t sent = 0;
  std::uint64_t by_formula = 0;
};

[[nodiscard]] inline std::vector<SharedFigures> figures_of(const std::string& out) {
  std::vector<SharedFigures> all;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    SharedFigures f;
    if (words >> f.name >> f.rank >> f.mean_loss >> f.hit_share >> f.test_accuracy >>
        f.test_images >> f.skipped_steps >> f.sent >> f.by_formula) {
      all.push_back(f);
    }
  }
  return all;
}

/// Compares what `ranks` ranks printed to `out` and wrote to `folder` with one process on the cpu.
/// Differences are relative to a number, or to 1 if it is less.
inline void expect_as_alone(const std::string& out, const std::string& folder, int ranks) {
  constexpr double kMost = 1e-5;
  const std::vector<SharedFigures> figures = figures_of(out);
  const std::vector<SharedCase> cases = shared_cases("cpu");
  EXPECT_EQ(figures.size(), cases.size() * static_cast<std::size_t>(ranks)) << out;
  for (const SharedCase& one : cases) {
    SCOPED_TRACE(one.name);
    const WideResult alone = train_wide(one.settings, {.read_weights = true});
    ASSERT_EQ(alone.run.outcome, Outcome::kFinished) << alone.run.report;
    const SharedWeights weights = read_shared(one, folder, ranks);
    ASSERT_EQ(weights.size(), alone.run.weights.size());
    double largest = 0;
    for (std::size_t p = 0; p < weights.size(); ++p) {
      ASSERT_EQ(weights[p].size(), alone.run.weights[p].size());
      for (std::size_t i = 0; i < weights[p].size(); ++i) {
        const double expected = alone.run.weights[p][i];
        const double difference = std::abs(weights[p][i] - expected);
        largest = std::max(largest, difference / std::max(std::abs(expected), 1.0));
      }
    }
    EXPECT_LE(largest, kMost);
    std::size_t found = 0;
    for (const SharedFigures& f : figures) {
      if (f.name != one.name) continue;
      ++found;
      EXPECT_NEAR(f.mean_loss, *alone.run.mean_loss, kMost * *alone.run.mean_loss);
      EXPECT_NEAR(f.hit_share, *alone.hit_share, 1e-6);
      EXPECT_NEAR(f.test_accuracy, *alone.run.test_accuracy, 1e-6);
      EXPECT_EQ(f.test_images, alone.run.test_images);
      EXPECT_EQ(f.skipped_steps, alone.skipped_steps);
      EXPECT_EQ(f.sent, f.by_formula);
      EXPECT_EQ(f.sent > 0, ranks > 1);
    }
    EXPECT_EQ(found, static_cast<std::size_t>(ranks));
    if (one.settings.precision.value == Precision::kFp16) {
      EXPECT_GT(alone.skipped_steps, 0U) << "no step overflows";
      EXPECT_LT(alone.skipped_steps, one.settings.train.batches.value);
    }
  }
}

}  // namespace weir::testing
