#include "tools/replay/recommend.hpp"

#include <algorithm>

namespace weir::replay {
namespace {

double share(Bytes bytes, Bytes peak) {
  return static_cast<double>(bytes.count) /
         static_cast<double>(std::max<std::uint64_t>(peak.count, 1));
}

/// Where the best of `scores` is; the end when there is none.
std::vector<Score>::const_iterator best_of(const std::vector<Score>& scores, double same_need) {
  const auto least = std::ranges::min_element(scores, {}, &Score::reserved);
  if (least == scores.end()) return least;
  const double most = least->reserved * (1 + same_need);
  auto best = least;
  for (auto score = scores.begin(); score != scores.end(); ++score) {
    if (score->reserved > most) continue;
    const bool quicker = score->total_ns() < best->total_ns();
    if (quicker || (score->total_ns() == best->total_ns() && score < best)) best = score;
  }
  return best;
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

std::vector<Score> scores_of(std::span<const TraceResults> results) {
  std::vector<Score> scores;
  const std::size_t candidates = results.empty() ? 0 : results.front().measured.size();
  for (std::size_t i = 0; i < candidates; ++i) {
    if (const auto score = score_of(results, i)) scores.push_back(*score);
  }
  return scores;
}

std::optional<Recommendation> recommend(std::span<const Score> scores, double same_need) {
  std::vector<Score> left(scores.begin(), scores.end());
  const auto best = best_of(left, same_need);
  if (best == left.end()) return std::nullopt;
  Recommendation recommendation{.best = *best, .second = {}};
  left.erase(best);
  const auto second = best_of(left, same_need);
  if (second != left.end()) recommendation.second = *second;
  return recommendation;
}

}  // namespace weir::replay
