#include "bench/simulate/report.hpp"

#include <algorithm>
#include <utility>

#include "allocator/base/version.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/table.hpp"

namespace weir::simulate {
namespace {

double part_of(Time part, Time all) {
  return all == Time{} ? 0 : static_cast<double>(part.count()) / static_cast<double>(all.count());
}

std::string percent(Time part, Time all) { return format_number(100 * part_of(part, all), 2); }

std::string shown(Time time) {
  return time == Time{} ? "0" : format_nanoseconds(static_cast<double>(time.count()));
}

double multiple_of(Bytes a, Bytes b) {
  return static_cast<double>(a.count) / static_cast<double>(b.count);
}

bool is_met(const Outcome& outcome) { return outcome.missed.empty() && outcome.better.empty(); }

std::string verdict(const Outcome& outcome) {
  if (outcome.policy != &policies().front()) return "";
  return is_met(outcome) ? "met" : "MISSED";
}

std::vector<std::string> cells(const Outcome& outcome) {
  const RunResult& run = outcome.run;
  return {std::string(outcome.workload->name),
          outcome.budget,
          std::string(outcome.policy->name),
          format_number(outcome.of_unbounded, 4),
          format_number(outcome.of_filling, 4),
          format_bytes(run.peak),
          format_number(multiple_of(run.peak, outcome.needs.two), 2),
          percent(run.idle.host, run.duration),
          percent(run.idle.device, run.duration),
          percent(run.idle.throttle, run.duration),
          percent(run.idle.memory, run.duration),
          percent(run.idle.warm_up, run.duration),
          shown(run.stalls.p50),
          shown(run.stalls.p99),
          shown(run.stalls.most),
          outcome.workload->producers.size() > 1 ? format_number(run.jain, 3) : "",
          run.failed > 0 ? std::to_string(run.failed) : "",
          verdict(outcome)};
}

std::string place(const Outcome& outcome) {
  return std::string(outcome.workload->name) + " at " + outcome.budget;
}

template <typename Lines>
nlohmann::ordered_json texts_of(const Lines& lines) {
  nlohmann::ordered_json texts = nlohmann::ordered_json::array();
  for (const auto& line : lines) texts.push_back(line.text());
  return texts;
}

nlohmann::ordered_json json_of(const Outcome& outcome) {
  const RunResult& run = outcome.run;
  nlohmann::ordered_json json{{"workload", outcome.workload->name},
                              {"budget", outcome.budget},
                              {"budget_bytes", outcome.budget_bytes.count},
                              {"policy", outcome.policy->name},
                              {"batches", run.batches},
                              {"out_of_memory", run.failed},
                              {"duration_ns", run.duration.count()},
                              {"computed_ns", run.computed.count()},
                              {"of_unbounded", outcome.of_unbounded},
                              {"of_filling", outcome.of_filling},
                              {"peak_bytes", run.peak.count},
                              {"peak_after_64_batches_bytes", run.warm_peak.count},
                              {"two_batches_bytes", outcome.needs.two.count},
                              {"jain", run.jain}};
  json["idle_ns"] = {{"host", run.idle.host.count()},
                     {"device", run.idle.device.count()},
                     {"throttle", run.idle.throttle.count()},
                     {"memory", run.idle.memory.count()},
                     {"warm_up", run.idle.warm_up.count()}};
  json["throttle_caused_idle_ns"] = run.caused_idle.count();
  json["stall_ns"] = {{"p50", run.stalls.p50.count()},
                      {"p95", run.stalls.p95.count()},
                      {"p99", run.stalls.p99.count()},
                      {"most", run.stalls.most.count()}};
  if (run.control) {
    json["target_ns"] = {{"end", run.control->target.count()},
                         {"most", run.control->most.count()},
                         {"lead", run.control->lead.count()},
                         {"copy", run.control->copy.count()},
                         {"margin", run.control->margin.count()}};
  }
  json["missed"] = texts_of(outcome.missed);
  json["better"] = texts_of(outcome.better);
  return json;
}

}  // namespace

std::string table_text(const std::vector<Outcome>& outcomes) {
  std::vector<std::vector<std::string>> rows{
      {"workload", "budget", "policy", "of unbounded", "of filling", "peak", "x two batches",
       "idle %: host", "device", "throttle", "memory", "warm-up", "stall p50", "p99", "most",
       "Jain", "failed", "bounds"}};
  for (const Outcome& outcome : outcomes) rows.push_back(cells(outcome));
  return format_table(rows, "lllrrrrrrrrrrrrrrl") + missed_text(outcomes);
}

std::string missed_text(const std::vector<Outcome>& outcomes) {
  std::string text;
  std::uint64_t rows = 0;
  std::uint64_t missed = 0;
  for (const Outcome& outcome : outcomes) {
    if (outcome.policy != &policies().front()) continue;
    ++rows;
    if (!is_met(outcome)) ++missed;
    const std::string begin = "  " + place(outcome) + ": ";
    for (const Miss& miss : outcome.missed) text += begin + miss.text() + "\n";
    for (const Better& better : outcome.better) text += begin + better.text() + "\n";
  }
  if (rows == 0) return "";
  return "\nthrottled misses a bound on " + std::to_string(missed) + " of " +
         format_count(rows, "row") + (missed > 0 ? ":" : "") + "\n" + text;
}

bool are_met(const std::vector<Outcome>& outcomes) { return std::ranges::all_of(outcomes, is_met); }

std::string outcomes_json(const std::vector<Outcome>& outcomes,
                          std::span<const SettingLine> settings) {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (const Outcome& outcome : outcomes) runs.push_back(json_of(outcome));
  const nlohmann::ordered_json json{{"weir", kVersion},
                                    {"settings", settings_json<nlohmann::ordered_json>(settings)},
                                    {"runs", std::move(runs)}};
  return json_text(json);
}

std::string series_csv(const std::vector<Outcome>& outcomes) {
  std::string text = "policy,time_ns,used_bytes,submitted,lead_ns,copy_ns,margin_ns\n";
  for (const Outcome& outcome : outcomes) {
    for (const Sample& sample : outcome.run.series) {
      text += std::string(outcome.policy->name) + "," + std::to_string(sample.time.count()) + "," +
              std::to_string(sample.used.count) + "," + std::to_string(sample.submitted) + "," +
              std::to_string(sample.lead.count()) + "," + std::to_string(sample.copy.count()) +
              "," + std::to_string(sample.margin.count()) + "\n";
    }
  }
  return text;
}

std::string list_text() {
  std::vector<std::vector<std::string>> rows{{"workload", "what it is"}};
  for (const Workload& workload : workloads()) {
    rows.push_back({std::string(workload.name), std::string(workload.about)});
  }
  rows.push_back({"", ""});
  rows.push_back({"policy", "what it is"});
  for (const PolicyChoice& policy : policies()) {
    rows.push_back({std::string(policy.name), std::string(policy.about)});
  }
  return format_table(rows, "ll");
}

}  // namespace weir::simulate
