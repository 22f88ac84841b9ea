#include "trainer/dispatch/dispatch_summary.hpp"

#include <utility>

#include "tools/program/median.hpp"

namespace weir {
namespace {

template <typename Row, typename Value>
double median_of(const std::vector<Row>& rows, const Value& value) {
  std::vector<double> values;
  values.reserve(rows.size());
  for (const Row& row : rows) values.push_back(value(row));
  return median(std::move(values));
}

using Predict = double (*)(std::uint64_t, const Stages&) noexcept;

struct Model {
  const char* experiment;
  const char* formula;
  double DispatchRound::*measured;
  Predict predict;
};

Prediction compare(const Model& model, const std::vector<DispatchRound>& rounds,
                   std::uint64_t operations, bool expected) {
  const auto predicted = [&](const DispatchRound& r) {
    return model.predict(operations, r.stages);
  };
  std::vector<double> ratios;
  ratios.reserve(rounds.size());
  for (const DispatchRound& r : rounds) ratios.push_back(predicted(r) / (r.*model.measured));
  return {.experiment = model.experiment,
          .formula = model.formula,
          .measured = median_of(rounds, [&](const DispatchRound& r) { return r.*model.measured; }),
          .predicted = median_of(rounds, predicted),
          .ratio = median(ratios),
          .low = quantile(ratios, 0.25),
          .high = quantile(ratios, 0.75),
          .expected = expected};
}

}  // namespace

CaseSummary summarize(const CaseFigures& figures, std::uint64_t operations) {
  constexpr Model kEach{"waiting for each", "n*(t1 + t2 + t3)", &DispatchRound::each, predict_each};
  constexpr Model kOnce{"waiting once", "t1 + n*t2 + t3", &DispatchRound::once, predict_once};
  constexpr Model kFrontend{"waiting once", "n*t1 + t2 + t3", &DispatchRound::once,
                            predict_once_frontend};
  constexpr Model kInTurns{"waiting once", "n*(t1 + device) + t3", &DispatchRound::once,
                           predict_once_in_turns};
  CaseSummary summary{.what = figures.what, .rounds = figures.rounds.size()};
  const auto& rounds = figures.rounds;
  if (rounds.empty()) return summary;
  for (double Stages::*stage : {&Stages::submit, &Stages::submit_waking, &Stages::execute,
                                &Stages::device, &Stages::back}) {
    summary.stages.*stage =
        median_of(rounds, [&](const DispatchRound& r) { return r.stages.*stage; });
  }
  summary.issued = median_of(rounds, [](const DispatchRound& r) { return r.issued; });
  summary.slower = slower_side(operations, summary.stages);
  summary.apart = sides_apart(summary.stages);
  const bool device = summary.slower == SlowerSide::kDevice;
  summary.predictions = {compare(kEach, rounds, operations, true),
                         compare(kOnce, rounds, operations, device && summary.apart)};
  if (!device) summary.predictions.push_back(compare(kFrontend, rounds, operations, summary.apart));
  if (!summary.apart) summary.predictions.push_back(compare(kInTurns, rounds, operations, false));
  return summary;
}

ProductRound summarize(const std::vector<ProductRound>& rounds) {
  ProductRound medians;
  for (double ProductRound::*time : {&ProductRound::returned, &ProductRound::completed,
                                     &ProductRound::many_returned, &ProductRound::many_completed}) {
    medians.*time = median_of(rounds, [&](const ProductRound& r) { return r.*time; });
  }
  return medians;
}

}  // namespace weir
