#include "trainer/dispatch/dispatch_report.hpp"

#include <nlohmann/json.hpp>

#include "allocator/base/version.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/table.hpp"
#include "trainer/dispatch/dispatch_summary.hpp"

namespace weir {
namespace {

using nlohmann::json;
using Rows = std::vector<std::vector<std::string>>;

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

std::string stages_table(const std::vector<CaseSummary>& cases) {
  Rows rows{
      {"x", "t1 submit", "waking", "t2 execute", "device", "t3 return", "rounds", "slower side"}};
  for (const CaseSummary& c : cases) {
    const Stages& s = c.stages;
    rows.push_back({name_of(c.what), microseconds(s.submit), microseconds(s.submit_waking),
                    microseconds(s.execute), microseconds(s.device), microseconds(s.back),
                    std::to_string(c.rounds), slower_side_of(c)});
  }
  return format_table(rows);
}

std::string predictions_table(const CaseSummary& c) {
  Rows rows{{name_of(c.what), "measured", "predicted", "ratio (middle half)", "expected to hold"}};
  for (const Prediction& p : c.predictions) {
    rows.push_back({p.experiment + ": " + p.formula, milliseconds(p.measured),
                    milliseconds(p.predicted),
                    format_number(p.ratio, 3) + " (" + format_number(p.low, 3) + " to " +
                        format_number(p.high, 3) + ")",
                    p.expected ? "yes" : "no"});
  }
  rows.push_back(
      {"waiting once: until the last call returned", milliseconds(c.issued), "-", "-", "-"});
  return format_table(rows);
}

std::string product_table(const DispatchSettings& settings, const DispatchFigures& figures) {
  const ProductRound p = summarize(figures.products);
  const std::string size = std::to_string(settings.matrix.value);
  return format_table({{size + " x " + size + " matrix product", "at return", "at completion"},
                       {"once", milliseconds(p.returned), milliseconds(p.completed)},
                       {std::to_string(Product::kMany) + " times, one wait",
                        milliseconds(p.many_returned), milliseconds(p.many_completed)}});
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

std::string format_dispatch(const DispatchSettings& settings, const DispatchFigures& figures) {
  const std::uint64_t n = settings.operations.value;
  std::vector<CaseSummary> cases;
  for (const CaseFigures& c : figures.cases) {
    if (!c.rounds.empty()) cases.push_back(summarize(c, n));
  }
  std::string text = "y = x + 1, medians over the rounds\n";
  if (!cases.empty()) text += "\nmicroseconds an operation:\n" + stages_table(cases);
  if (!cases.empty()) text += "\nmilliseconds for n = " + std::to_string(n) + " operations:\n";
  for (std::size_t i = 0; i < cases.size(); ++i) {
    text += (i == 0 ? "" : "\n") + predictions_table(cases[i]);
  }
  if (!figures.products.empty()) {
    text += "\nmilliseconds, medians of " + format_count(figures.products.size(), "round") + ":\n" +
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
