#include "bench/simulate/report.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "allocator/base/version.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/report_table.hpp"
#include "tools/program/table.hpp"

namespace weir::simulate {
namespace {

double part_of(Time part, Time all) {
  return all == Time{} ? 0 : static_cast<double>(part.count()) / static_cast<double>(all.count());
}

std::string percent(Time part, Time all) { return format_number(100 * part_of(part, all), 2); }

double multiple_of(Bytes a, Bytes b) {
  return static_cast<double>(a.count) / static_cast<double>(b.count);
}

bool is_met(const Outcome& outcome) { return outcome.missed.empty() && outcome.better.empty(); }

std::string verdict(const Outcome& outcome) {
  if (outcome.policy != &policies().front()) return "";
  return is_met(outcome) ? "met" : "MISSED";
}

/// Makes the columns of the table.
class Columns {
 public:
  explicit Columns(const std::vector<Outcome>& outcomes) : outcomes_(outcomes) {}

  [[nodiscard]] std::string table(bool wide) const {
    ReportTable table;
    table
        .words({"workload", "what runs (--list)"},
               texts([](const Outcome& outcome) { return std::string(outcome.workload->name); }),
               Long::kCut)
        .words({"budget", "in least budgets, or a size"},
               texts([](const Outcome& outcome) { return outcome.budget; }), Long::kCut)
        .words({"policy", "what limits it (--list)"},
               texts([](const Outcome& outcome) { return std::string(outcome.policy->name); }),
               Long::kCut)
        .numbers(
            {"to unbounded", "speed over that of unbounded"},
            texts([](const Outcome& outcome) { return format_number(outcome.of_unbounded, 4); }))
        .numbers({"to filling", "speed over the fastest run that fills the budget", Shown::kWide},
                 texts([](const Outcome& outcome) { return format_number(outcome.of_filling, 4); }))
        .bytes({"peak", "most memory used"},
               cells_of(outcomes_,
                        [](const Outcome& outcome) { return std::optional(outcome.run.peak); }))
        .numbers({"x two batches", "that over the memory of two batches", Shown::kWide},
                 texts([](const Outcome& outcome) {
                   return format_number(multiple_of(outcome.run.peak, outcome.needs.two), 2);
                 }));
    add_idle(table);
    add_stalls(table);
    table.words({"bounds", "whether throttled keeps them"}, texts(verdict));
    return table.format(wide);
  }

 private:
  template <typename Text>
  [[nodiscard]] std::vector<std::string> texts(const Text& text) const {
    return cells_of(outcomes_,
                    [&](const Outcome& outcome) -> std::string { return text(outcome); });
  }
  [[nodiscard]] std::vector<std::string> idle(Time Idle::*part) const {
    return texts([&](const Outcome& outcome) {
      return percent(outcome.run.idle.*part, outcome.run.duration);
    });
  }
  template <typename Stall>
  [[nodiscard]] std::vector<std::optional<double>> stalls(const Stall& stall) const {
    return cells_of(outcomes_, [&](const Outcome& outcome) {
      return std::optional(static_cast<double>(stall(outcome.run.stalls).count()));
    });
  }

  void add_idle(ReportTable& table) const {
    table
        .numbers({"throttle %", "share of the time that the device is idle because of the policy"},
                 idle(&Idle::throttle))
        .numbers({"host %", "idle because of the host", Shown::kWide}, idle(&Idle::host))
        .numbers({"device %", "idle between tasks of the device", Shown::kWide},
                 idle(&Idle::device))
        .numbers({"memory %", "idle because memory was short", Shown::kWide}, idle(&Idle::memory))
        .numbers({"warm-up %", "idle in the first 64 batches", Shown::kWide}, idle(&Idle::warm_up));
  }

  void add_stalls(ReportTable& table) const {
    const auto wide = Shown::kWide;
    table
        .times({"p99", "how long 99% of the batches are held back at most"},
               stalls([](const auto& s) { return s.p99; }))
        .times({"p50", "median of the same", wide}, stalls([](const auto& s) { return s.p50; }))
        .times({"most", "the longest", wide}, stalls([](const auto& s) { return s.most; }))
        .numbers({"Jain", "fairness of several producers", wide}, texts([](const Outcome& outcome) {
                   return outcome.workload->producers.size() > 1
                              ? format_number(outcome.run.jain, 3)
                              : std::string();
                 }))
        .numbers({"failed", "batches, out of memory", wide}, texts([](const Outcome& outcome) {
                   return outcome.run.failed > 0 ? std::to_string(outcome.run.failed)
                                                 : std::string();
                 }));
  }

  const std::vector<Outcome>& outcomes_;
};

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
    json["target_ns"] = {{"end", run.control->target.count()}, {"most", run.control->most.count()}};
  }
  json["missed"] = texts_of(outcome.missed);
  json["better"] = texts_of(outcome.better);
  return json;
}

}  // namespace

std::string table_text(const std::vector<Outcome>& outcomes, bool wide) {
  return Columns(outcomes).table(wide) + missed_text(outcomes);
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
