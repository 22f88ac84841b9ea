#include "tools/replay/measure/recommend.hpp"

#include <algorithm>
#include <utility>

namespace weir::replay {
namespace {

double share(Bytes bytes, Bytes peak) {
  return static_cast<double>(bytes.count) /
         static_cast<double>(std::max<std::uint64_t>(peak.count, 1));
}

/// Returns whether the times of `score` and `quickest` are equal within the noise.
bool as_quick(const Score& score, const Score& quickest) {
  const double noise = kNoise * std::max(score.ns_per_operation, quickest.ns_per_operation);
  return score.total_ns() <= quickest.total_ns() + noise;
}

/// Removes and returns the scores that are as good as the best, in their order.
std::vector<Score> take_best(std::vector<Score>& scores, double same_need) {
  if (scores.empty()) return {};
  const double most =
      std::ranges::min_element(scores, {}, &Score::reserved)->reserved * (1 + same_need);
  const Score* quickest = nullptr;
  for (const Score& score : scores) {
    if (score.reserved > most) continue;
    if (quickest == nullptr || score.total_ns() < quickest->total_ns()) quickest = &score;
  }
  // Not std::ranges: clang 14 cannot compile GCC 12's version.
  const auto others = std::stable_partition(
      scores.begin(), scores.end(), [most, than = *quickest](const Score& score) {
        return score.reserved <= most && as_quick(score, than);
      });
  std::vector<Score> best(scores.begin(), others);
  scores.erase(scores.begin(), others);
  return best;
}

/// Returns the score to recommend among equals.
std::vector<Score>::const_iterator preferred(const std::vector<Score>& equal) {
  const auto usual = std::ranges::find(equal, true, &Score::by_default);
  return usual == equal.end() ? equal.begin() : usual;
}

std::optional<Score> score_of(std::span<const TraceResults> results, std::size_t candidate) {
  Score score{.candidate = candidate};
  double operations = 0;
  for (const TraceResults& result : results) {
    const Measured& measured = result.measured[candidate];
    if (measured.figures.refusal) return std::nullopt;
    const auto here = static_cast<double>(measured.figures.operations);
    score.reserved =
        std::max(score.reserved, share(measured.figures.peak_reserved, result.peak_requested));
    score.driver_calls += static_cast<double>(measured.figures.driver_calls);
    score.ns_per_operation += measured.ns_per_operation * here;
    operations += here;
  }
  if (operations == 0) return std::nullopt;
  score.driver_calls /= operations;
  score.ns_per_operation /= operations;
  return score;
}

}  // namespace

double Score::total_ns() const noexcept { return ns_per_operation + driver_calls * kDriverCallNs; }

std::vector<Score> scores_of(std::span<const TraceResults> results,
                             const std::vector<bool>& by_default) {
  std::vector<Score> scores;
  const std::size_t candidates = results.empty() ? 0 : results.front().measured.size();
  for (std::size_t i = 0; i < candidates; ++i) {
    if (auto score = score_of(results, i)) {
      score->by_default = by_default[i];
      scores.push_back(*score);
    }
  }
  return scores;
}

std::optional<Recommendation> recommend(std::span<const Score> scores, double same_need) {
  std::vector<Score> left(scores.begin(), scores.end());
  std::vector<Score> equal = take_best(left, same_need);
  if (equal.empty()) return std::nullopt;
  const auto best = preferred(equal);
  Recommendation recommendation{.best = *best, .equal = {}, .second = {}};
  equal.erase(best);
  recommendation.equal = std::move(equal);
  const std::vector<Score> next = take_best(left, same_need);
  if (!next.empty()) recommendation.second = *preferred(next);
  return recommendation;
}

}  // namespace weir::replay
