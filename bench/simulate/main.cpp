// weir-simulate: the table of policies, workloads and budgets on simulated time.

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/error.hpp"
#include "bench/simulate/choices.hpp"
#include "bench/simulate/report.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/run_main.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir::simulate {
namespace {

struct Flags {
  ChoiceFlags choices{.budgets = "1,1.5,2,4,16,devices"};
  std::string batches = "5000";
  std::string jitter = "assumed";
  std::string json;
  std::string svg;
  std::string svg_of = "memory";
  std::string hand_over;
  bool check = false;
  bool list = false;
};

void add_flags(CommandLine& line, Flags& flags) {
  flags.choices.add_to(line);
  line.add("--batches", flags.batches, Value("N"), "batches of a run, up to 10000000");
  line.add("--jitter", flags.jitter, Value("none|assumed|FILE"),
           "how unsteady the host is; FILE is a recording");
  line.add("--json", flags.json, Value("FILE"),
           "write all figures to FILE; - is standard output, without the table");
  line.add("--svg", flags.svg, Value("FILE"),
           "draw memory over time, of one workload and budget and up to six policies");
  line.add("--svg-of", flags.svg_of, Value("memory|target"),
           "what --svg shows; target is the run-ahead target and the memory of one policy "
           "with a target that adapts");
  line.add("--hand-over", flags.hand_over, Value("never|last|always"),
           "when weir's pool hands memory of a freed working set to a copy, which then waits for "
           "it; last is if one batch is submitted; it always does");
  line.add("--check", flags.check,
           "exit with 1 if throttled misses a bound, or a policy of --policy is better");
  line.add("--list", flags.list, "print the workloads and the policies");
}

std::optional<HandOver> parse_hand_over(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text == "never") return HandOver::kNever;
  if (text == "last") return HandOver::kLast;
  if (text == "always") return HandOver::kAlways;
  refuse("--hand-over", text, "never, last or always");
}

bool is_of_target(const Flags& flags) {
  if (flags.svg_of == "target") return true;
  if (flags.svg_of == "memory") return false;
  refuse("--svg-of", flags.svg_of, "memory or target");
}

bool has_target(const PolicyChoice& policy) {
  return policy.rule == PolicyChoice::Rule::kWeir && adapts(policy.run_ahead);
}

ComparisonOptions checked(const Flags& flags) {
  ComparisonOptions options;
  const Choices choices = flags.choices.read();
  options.workloads = choices.workloads;
  options.policies = choices.policies;
  options.budgets = choices.budgets;
  options.run.seed = choices.seed;
  if (flags.check && std::ranges::count(options.policies, &policies().front()) == 0) {
    throw UsageError("--check needs the policy throttled");
  }
  options.run.batches = whole("--batches", flags.batches, 1, 10'000'000);
  options.run.jitter = read_jitter(flags.jitter);
  options.run.hand_over = parse_hand_over(flags.hand_over);
  options.run.keep_series = !flags.svg.empty();
  if (options.run.keep_series && (options.workloads.size() != 1 || options.budgets.size() != 1)) {
    throw UsageError("--svg needs one --workload and one --budget");
  }
  if (!flags.svg.empty() && options.policies.size() > 6) {
    throw UsageError("--svg draws up to six policies: name them with --policy");
  }
  if (is_of_target(flags) && (options.policies.size() != 1 || !has_target(*options.policies[0]))) {
    throw UsageError("--svg-of target needs one --policy with a target that adapts: throttled");
  }
  return options;
}

/// Files that are written at the end, opened before.
class Outputs {
 public:
  explicit Outputs(const Flags& flags) : of_target_(is_of_target(flags)) {
    require_different_files(std::vector<NamedPath>{{"--json", flags.json}, {"--svg", flags.svg}});
    if (!flags.json.empty()) json_.emplace("--json", flags.json);
    if (!flags.svg.empty()) svg_.emplace("--svg", flags.svg);
  }

  void write(const std::vector<Outcome>& outcomes, const CommandLine& line) {
    if (json_) json_->commit(outcomes_json(outcomes, line.settings()));
    if (svg_) {
      svg_->commit(of_target_ ? target_picture_svg(outcomes.front()) : picture_svg(outcomes));
    }
  }

 private:
  const bool of_target_;
  std::optional<OutputFile> json_;
  std::optional<OutputFile> svg_;
};

int run(const CommandLine& line, const Flags& flags) {
  if (flags.list) {
    std::fputs(list_text().c_str(), stdout);
    return 0;
  }
  const ComparisonOptions options = checked(flags);
  Outputs outputs(flags);
  std::vector<Outcome> outcomes;
  compare(options, [&](Outcome&& outcome) { outcomes.push_back(std::move(outcome)); });
  if (outcomes.empty()) throw UsageError("--budget: below the least budget of each workload");
  const bool has_table = flags.json != "-" && flags.svg != "-";
  if (has_table) std::fputs(table_text(outcomes, flags.choices.wide).c_str(), stdout);
  outputs.write(outcomes, line);
  if (std::fflush(stdout) != 0) throw Error("standard output cannot be written");
  if (!flags.check || are_met(outcomes)) return 0;
  if (!has_table) std::fputs(missed_text(outcomes).c_str(), stderr);
  return 1;
}

int run_program(int argc, char** argv) {
  CommandLine line("simulate admission policies: throughput, memory, idle time and stalls");
  Flags flags;
  add_flags(line, flags);
  line.set_page("docs/simulate.md");
  line.set_footer(
      "Without flags, the whole table. A bound that weir's own policy misses is listed under it.");
  if (const auto code = line.parse("weir-simulate", argc, argv)) return *code;
  require_standard_output();
  return line.run([&] { return run(line, flags); });
}

}  // namespace
}  // namespace weir::simulate

int main(int argc, char** argv) {
  return weir::run_main("weir-simulate", [&] { return weir::simulate::run_program(argc, argv); });
}
