#include "tools/gpu_check/report/page.hpp"

#include "tools/gpu_check/report/bench_figures.hpp"
#include "tools/gpu_check/report/comparison.hpp"
#include "tools/gpu_check/report/evidence.hpp"
#include "tools/gpu_check/report/judging.hpp"
#include "tools/gpu_check/report/kernel_bounds.hpp"
#include "tools/gpu_check/report/program_page.hpp"
#include "tools/gpu_check/report/programs.hpp"
#include "tools/gpu_check/report/text.hpp"
#include "tools/gpu_check/report/timelines.hpp"
#include "tools/gpu_check/report/traces.hpp"

namespace weir::gpu_check {

using nlohmann::json;
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string code(const std::string& text) { return "`" + text + "`"; }

/// Whether the driver was the stand-in.
bool is_rehearsal(const json& evidence) { return evidence.at("machine").value("rehearsal", false); }

std::string heading(const json& evidence) {
  const std::string device = evidence.at("machine").at("gpus").at(0).at("name");
  const std::string call = evidence.value("call", "");
  std::string of = device + ", " + evidence.value("date", "");
  if (call == kAllCalls) {
    of += ", all calls";
  } else if (!call.empty()) {
    of += ", only " + call;
  }
  of += "\n\n";
  if (!is_rehearsal(evidence)) return "# " + of;
  return "# Rehearsal, without a GPU: " + of +
         "Nothing here ran on a GPU, and no figure tells anything of one.\n\n";
}

/// The commit, with a note where two builds of that name may differ.
std::string commit_note(const std::string& commit) {
  constexpr const char* kMayDiffer = ": calls may be of different code";
  if (commit.ends_with("-dirty")) {
    return commit + ", of a tree with uncommitted changes" + kMayDiffer;
  }
  return commit == "unknown" ? commit + kMayDiffer : commit;
}

std::string machine_table(const json& evidence) {
  const json& machine = evidence.at("machine");
  Rows rows{{"", ""}};
  for (const json& gpu : machine.at("gpus")) {
    rows.push_back({"device", gpu.at("name").get<std::string>() + ", " +
                                  bytes(gpu.at("memory_bytes").get<double>()) +
                                  ", compute capability " +
                                  gpu.at("compute_capability").get<std::string>() + ", " +
                                  gpu.at("multiprocessors").dump() + " multiprocessors"});
  }
  const std::string driver = machine.value("driver", "");
  rows.push_back({"driver", (driver.empty() ? "of unknown version" : driver) + ", for CUDA " +
                                machine.value("driver_cuda", "")});
  rows.push_back(
      {"toolkit", machine.value("toolkit", "") + ", runtime " + machine.value("runtime", "")});
  rows.push_back({"matrix products", machine.value("cublas", "")});
  for (const json& setting : machine.value("settings", json::array())) {
    rows.push_back({"set for unmodified programs alone", code(setting)});
  }
  rows.push_back({"commit", commit_note(machine.value("commit", ""))});
  rows.push_back({"date", evidence.value("date", "")});
  return markdown_table(rows);
}

std::string conditions_table(const std::vector<Verdict>& verdicts) {
  Rows rows{{"condition", "verdict", "found"}};
  for (const Verdict& verdict : verdicts) {
    rows.push_back({verdict.condition, to_string(verdict.state), verdict.figure});
  }
  return markdown_table(rows);
}

std::vector<std::string> policy_row(const PolicyLine& line, const std::string& label) {
  if (!line.ran()) return {label, "-", "-", "-", "-", "-", "-", line.outcome};
  return {
      label,
      number(line.batches_per_second, 1),
      line.ratio ? spread(*line.ratio, line.ratio_low, line.ratio_high) : "-",
      line.to_plain ? spread(line.to_plain->median, line.to_plain->low, line.to_plain->high) : "-",
      number(line.host_us, 1) + " us",
      bytes(line.peak_reserved_bytes),
      line.idle_share ? number(100 * *line.idle_share, 1) + "%" : "-",
      line.outcome};
}

std::string comparison_section(const json& figures, const Comparison& comparison) {
  const ComparisonFigures read = read_comparison(figures);
  Rows rows{{"policy", "batches/s", "to unbounded with enough memory (spread)",
             "to the loop without Weir (spread)", "host time per batch", "peak reserved", "idle",
             "result"}};
  PolicyLine reference = read.reference;
  reference.ratio.reset();  // to itself
  rows.push_back(policy_row(reference, "unbounded, enough memory"));
  rows.push_back(policy_row(read.plain, "without Weir"));
  for (const PolicyLine& line : read.policies) rows.push_back(policy_row(line, line.policy));
  return "### " + std::string(comparison.title) + "\n\n" + code(read.settings) + "\n\n" +
         markdown_table(rows) + "\nWeights " + (read.identical ? "" : "NOT ") +
         "bit-identical in the " + count(read.finished_runs, "run") + " that finished.\n\n";
}

std::vector<std::string> kernel_row(const JudgedKernel& judged) {
  const KernelFigures& kernel = judged.kernel;
  std::vector<std::string> row{kernel.name, kernel.shape, number(kernel.median_us, 1) + " us",
                               number(kernel.floor_us, 1) + " us", kernel.floor_of};
  if (kernel.gives_floor()) {
    row.insert(row.end(), {"", "", ""});
    return row;
  }
  std::string bound = judged.has_bound() ? number(judged.most, 2) : "";
  if (!judged.reason.empty()) bound += (bound.empty() ? "" : ": ") + judged.reason;
  row.insert(row.end(), {number(kernel.ratio(), 2), bound, to_string(met_if(judged.within()))});
  return row;
}

std::string kernels_section(const json& figures) {
  Rows rows{{"kernel", "shape", "median", "floor", "floor of", "time over floor", "at most", ""}};
  for (KernelFigures& kernel : read_bench(figures)) {
    rows.push_back(kernel_row(judge_kernel(std::move(kernel))));
  }
  return markdown_table(rows) + "\n";
}

std::string tests_section(const json& figures) {
  const TestCounts counts = count_tests(figures);
  std::string text = count(counts.passed, "test") + " passed.\n";
  for (const std::string& name : counts.failed) text += "\n- failed: " + code(name);
  for (const std::string& name : counts.skipped) text += "\n- skipped: " + code(name);
  return text + (counts.failed.empty() && counts.skipped.empty() ? "\n" : "\n\n");
}

std::string steps_table(const json& evidence) {
  Rows rows{{"step", "outcome", "seconds", "limit", "command"}};
  for (const json& found : evidence.at("steps")) {
    const Step step = step_of(evidence, found.at("name"));
    rows.push_back({step.name, describe(step), step.ran() ? number(step.seconds, 0) : "",
                    step.ran() ? number(step.limit, 0) + " s" : "",
                    step.ran() ? code(step.command) : ""});
  }
  return markdown_table(rows);
}

/// The section, or why it is not there: the page must come out whatever a step wrote.
template <typename Write>
std::string section(const json& evidence, const std::string& step, const Write& write) {
  const json& figures = figures_of(evidence, step);
  if (figures.is_null()) return "No figures: " + describe(step_of(evidence, step)) + ".\n\n";
  try {
    return write(figures);
  } catch (const std::exception& error) {
    return "The figures of step " + code(step) + " are not as expected: " + error.what() + "\n\n";
  }
}

}  // namespace

std::string markdown_table(const Rows& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += "|";
    for (const std::string& cell : rows[i]) {
      text += " ";
      for (const char c : cell) {
        if (c == '|') text += '\\';
        text += c == '\n' ? ' ' : c;
      }
      text += " |";
    }
    text += "\n";
    if (i != 0) continue;
    text += "|";
    for (std::size_t column = 0; column < rows[i].size(); ++column) text += "---|";
    text += "\n";
  }
  return text;
}

std::string page_name(const json& evidence) {
  const std::string call = evidence.value("call", "");
  return std::string(is_rehearsal(evidence) ? "rehearsal-" : "gpu-") + device_slug(evidence) + "-" +
         evidence.value("date", "") + (call.empty() ? "" : "-" + call);
}

std::string page(const json& evidence, const std::vector<Verdict>& verdicts,
                 const std::string& json_name) {
  std::string text = heading(evidence) + "Written by `tools/gpu-check`; [" + json_name + "](" +
                     json_name + ") has the same figures.\n\n" + machine_table(evidence) +
                     "\n## Conditions\n\n" + conditions_table(verdicts) + "\n## Policies\n\n";
  for (const Comparison& comparison : kComparisons) {
    if (figures_of(evidence, comparison.step).is_null()) {
      text += "### " + std::string(comparison.title) + "\n\n";
    }
    text += section(evidence, comparison.step,
                    [&](const json& figures) { return comparison_section(figures, comparison); });
  }
  text += "## Kernels\n\n" + section(evidence, "bench", kernels_section) +
          "## Unmodified programs\n\n" + section(evidence, kProgramsStep, programs_section) +
          "## Facts\n\n" + section(evidence, "facts", facts_section) + "## Traces\n\n" +
          section(evidence, kTracesStep, traces_section) + "## Timelines\n\n" +
          section(evidence, kTimelineStep, timeline_section) +
          section(evidence, kTimelineCostStep, timeline_cost_section) +
          section(evidence, kTimelineProgramsStep, timeline_programs_section) + "## Tests\n\n" +
          section(evidence, "tests", tests_section) + "## Steps\n\n" + steps_table(evidence);
  return text;
}

std::string verdict_lines(const std::vector<Verdict>& verdicts) {
  std::string text;
  for (const Verdict& verdict : verdicts) {
    const std::string word = to_string(verdict.state);
    text += word + std::string(word.size() < 10 ? 10 - word.size() : 1, ' ') + verdict.condition +
            ": " + verdict.figure + "\n";
  }
  return text;
}

}  // namespace weir::gpu_check
