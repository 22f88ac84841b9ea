#include <nlohmann/json.hpp>
#include <utility>

#include "allocator/base/version.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/median.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/report_table.hpp"
#include "trainer/dispatch/dispatch.hpp"

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

using nlohmann::json;

std::string microseconds(double seconds) { return format_number(1e6 * seconds, 2); }
std::string milliseconds(double seconds) { return format_number(1e3 * seconds, 3); }

std::string name_of(const DispatchCase& what) {
  std::string name = format_count(what.elements, "element");
  if (what.frontend.count() != 0) {
    name += ", a frontend of " + std::to_string(what.frontend.count()) + " us";
  }
  return name;
}

std::string slower_side_of(const CaseSummary& c) {
  const std::string side = c.slower == SlowerSide::kDevice ? "the device" : "the frontend";
  return c.apart ? side : side + ", and near";
}

std::string stages_table(const std::vector<CaseSummary>& cases, bool wide) {
  const auto stages = [&](const auto& seconds) {
    return cells_of(cases, [&](const CaseSummary& c) { return microseconds(seconds(c.stages)); });
  };
  ReportTable table;
  table
      .words({"x", "the vector, and how long the program computes before each call"},
             cells_of(cases, [](const CaseSummary& c) { return name_of(c.what); }), Long::kCut)
      .numbers({"t1 us", "time to submit"}, stages([](const Stages& s) { return s.submit; }))
      .numbers({"t2 us", "time to execute"}, stages([](const Stages& s) { return s.execute; }))
      .numbers({"t3 us", "time to return"}, stages([](const Stages& s) { return s.back; }))
      .numbers({"waking us", "submit to a device that sleeps", Shown::kWide},
               stages([](const Stages& s) { return s.submit_waking; }))
      .numbers({"device us", "execute, with the device's own work", Shown::kWide},
               stages([](const Stages& s) { return s.device; }))
      .numbers({"rounds", "of which these are medians", Shown::kWide},
               cells_of(cases, [](const CaseSummary& c) { return std::to_string(c.rounds); }))
      .words({"slower side", "what the runs wait for"}, cells_of(cases, slower_side_of));
  return table.format(wide);
}

ReportTable predictions_of(const CaseSummary& c) {
  std::vector<Prediction> rows = c.predictions;
  const auto cells = [&](const auto& cell, const std::string& issued) {
    std::vector<std::string> texts = cells_of(rows, cell);
    texts.push_back(issued);
    return texts;
  };
  ReportTable table;
  table
      .words({"waiting", "how the program waits, and the model's formula for it"},
             cells([](const Prediction& p) { return p.experiment + ": " + p.formula; },
                   "waiting once: until the last call returned"),
             Long::kCut)
      .numbers({"ratio", "predicted over measured time, median"},
               cells([](const Prediction& p) { return format_number(p.ratio, 3); }, "-"))
      .numbers({"middle half", "of the rounds' ratios", Shown::kWide},
               cells(
                   [](const Prediction& p) {
                     return format_number(p.low, 3) + " to " + format_number(p.high, 3);
                   },
                   "-"))
      .numbers({"measured ms", "for all operations, median"},
               cells([](const Prediction& p) { return milliseconds(p.measured); },
                     milliseconds(c.issued)))
      .numbers({"predicted ms", "by the formula, from the stages"},
               cells([](const Prediction& p) { return milliseconds(p.predicted); }, "-"))
      .words(
          {"should hold", "whether the formula is for such stages"},
          cells([](const Prediction& p) { return std::string(p.expected ? "yes" : "no"); }, "-"));
  return table;
}

std::string product_table(const DispatchSettings& settings, const DispatchFigures& figures) {
  const ProductRound p = summarize(figures.products);
  const std::string size = std::to_string(settings.matrix.value);
  ReportTable table;
  table
      .words({size + " x " + size + " matrix product", "how often"},
             {"once", std::to_string(Product::kMany) + " times, one wait"})
      .numbers({"at return ms", "when the last call returned"},
               {milliseconds(p.returned), milliseconds(p.many_returned)})
      .numbers({"at completion ms", "when the result was there"},
               {milliseconds(p.completed), milliseconds(p.many_completed)});
  return table.format(false);
}

json stages_json(const Stages& s) {
  return {{"t1_submit", s.submit},
          {"t1_submit_waking", s.submit_waking},
          {"t2_execute", s.execute},
          {"device", s.device},
          {"t3_return", s.back}};
}

json case_json(const CaseSummary& c) {
  json j{{"elements", c.what.elements},
         {"frontend_us", c.what.frontend.count()},
         {"rounds", c.rounds}};
  if (c.rounds == 0) return j;
  j["stages_seconds"] = stages_json(c.stages);
  j["slower_side"] = c.slower == SlowerSide::kDevice ? "device" : "frontend";
  j["sides_apart"] = c.apart;
  j["waiting_once_issued_seconds"] = c.issued;
  for (const Prediction& p : c.predictions) {
    j["predictions"].push_back({{"experiment", p.experiment},
                                {"formula", p.formula},
                                {"measured_seconds", p.measured},
                                {"predicted_seconds", p.predicted},
                                {"ratio", p.ratio},
                                {"ratio_lower_quartile", p.low},
                                {"ratio_upper_quartile", p.high},
                                {"expected_to_hold", p.expected}});
  }
  return j;
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

std::string format_dispatch(const DispatchSettings& settings, const DispatchFigures& figures,
                            bool wide) {
  const std::uint64_t n = settings.operations.value;
  std::vector<CaseSummary> cases;
  for (const CaseFigures& c : figures.cases) {
    if (!c.rounds.empty()) cases.push_back(summarize(c, n));
  }
  std::string text = "y = x + 1, medians over the rounds\n";
  if (!cases.empty()) text += "\nan operation:\n" + stages_table(cases, wide);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const ReportTable table = predictions_of(cases[i]);
    text += "\n" + name_of(cases[i].what) + ", n = " + std::to_string(n) + " operations:\n" +
            table.rows(wide) + (i + 1 == cases.size() ? table.legend(wide) : "");
  }
  if (!figures.products.empty()) {
    text += "\nmedians of " + format_count(figures.products.size(), "round") + ":\n" +
            product_table(settings, figures);
  }
  if (figures.interrupted) text += "\ninterrupted: these are the figures so far\n";
  return text;
}

std::string dispatch_json(const DispatchSettings& settings, const DispatchFigures& figures) {
  json cases = json::array();
  for (const CaseFigures& c : figures.cases) {
    cases.push_back(case_json(summarize(c, settings.operations.value)));
  }
  const ProductRound p = summarize(figures.products);
  json product{{"rows", settings.matrix.value}, {"rounds", figures.products.size()}};
  if (!figures.products.empty()) {
    product["one"] = {{"returned_seconds", p.returned}, {"completed_seconds", p.completed}};
    product["many"] = {{"products", Product::kMany},
                       {"returned_seconds", p.many_returned},
                       {"completed_seconds", p.many_completed}};
  }
  const json j{{"weir", kVersion},
               {"settings", settings_json(settings.lines())},
               {"operations", settings.operations.value},
               {"rounds", settings.rounds.value},
               {"cases", std::move(cases)},
               {"matrix_product", std::move(product)},
               {"interrupted", figures.interrupted}};
  return json_text(j);
}

}  // namespace weir
