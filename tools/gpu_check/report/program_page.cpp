#include "tools/gpu_check/report/program_page.hpp"

#include <vector>

#include "tools/gpu_check/report/page.hpp"
#include "tools/gpu_check/report/program_verdicts.hpp"
#include "tools/gpu_check/report/programs.hpp"
#include "tools/gpu_check/report/text.hpp"

namespace weir::gpu_check {

using nlohmann::json;
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Its time over that of the same without Weir.
std::string time_ratio(const ProgramFigures& program, const ProgramRun& run) {
  const ProgramRun* plain = program.find(without_weir(run.setup));
  if (!with_weir(run.setup) || plain == nullptr || !run.seconds || !plain->seconds) return "";
  return *plain->seconds > 0 ? number(*run.seconds / *plain->seconds, 3) : "";
}

std::string served(const ProgramRun& run) {
  if (!with_weir(run.setup)) return "";
  const std::optional<double> share = run.served_share();
  return share ? number(100 * *share, 2) + "%" : "-";
}

std::vector<std::string> row(const ProgramFigures& program, const ProgramRun& run) {
  const bool weir = run.weir.has_value();
  return {setup_title(run.setup),
          run.outcome(),
          run.seconds ? number(*run.seconds, 3) + " s" : "",
          time_ratio(program, run),
          run.peak_bytes ? bytes(*run.peak_bytes) : "",
          weir ? bytes(run.weir->peak_reserved_bytes) : "",
          served(run),
          weir ? std::to_string(run.weir->held_back + run.weir->waits) + ", " +
                     number(run.weir->waited_seconds, 2) + " s"
               : ""};
}

std::string program_table(const UnmodifiedProgram& which,
                          const std::vector<ProgramFigures>& programs) {
  std::string text = "### " + std::string(which.title) + "\n\n";
  const ProgramFigures* program = find_program(programs, which.name);
  if (program == nullptr) return text + "Not run.\n\n";
  if (!program->left_out.empty()) return text + "Left out: " + program->left_out + ".\n\n";
  Rows rows{{"setup", "result", "time", "to without Weir", "reserved by the framework",
             "reserved by Weir", "served by Weir", "waits"}};
  std::string framework;
  for (const ProgramRun& run : program->runs) {
    rows.push_back(row(*program, run));
    if (framework.empty()) framework = run.framework;
  }
  return text + (framework.empty() ? "" : framework + ".\n\n") + markdown_table(rows) + "\n";
}

}  // namespace

std::string programs_section(const json& figures) {
  const std::vector<ProgramFigures> programs = read_programs(figures);
  std::string text;
  for (const UnmodifiedProgram& which : kTrainingPrograms) text += program_table(which, programs);
  for (const UnmodifiedProgram& which : {kPrefetchProgram, kSharedProgram}) {
    text += program_table(which, programs);
  }
  return text;
}

std::string facts_section(const json& figures) {
  Rows rows{{"fact", "expected", "found", "otherwise"}};
  for (const json& fact : figures.at("facts")) {
    rows.push_back({fact.at("fact"), fact.at("expected"), fact.value("answer", kNoAnswer),
                    fact.value("otherwise", "")});
  }
  return markdown_table(rows) + "\n";
}

}  // namespace weir::gpu_check
