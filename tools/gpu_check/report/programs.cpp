#include "tools/gpu_check/report/programs.hpp"

#include <algorithm>
#include <utility>

#include "allocator/base/error.hpp"

namespace weir::gpu_check {

using nlohmann::json;
namespace {

constexpr int kOutOfMemory = 75;  // as harness.py ends

/// Kinds of memory that no allocator can serve: the driver lays them out.
bool only_drivers(const std::string& kind) { return kind == "modules" || kind == "contexts"; }

double nanoseconds(const json& count) { return count.get<double>() / 1e9; }

void add_device(const json& device, SwapInFigures& figures) {
  const json& pool = device.at("pool");
  figures.served_bytes += device.at("served_bytes").get<double>();
  for (const json& passed : device.at("passed")) {
    if (!passed.at("counted").get<bool>()) continue;
    (only_drivers(passed.at("kind")) ? figures.other_bytes : figures.passed_bytes) +=
        passed.at("sum_bytes").get<double>();
  }
  figures.peak_reserved_bytes += pool.at("reserved_bytes").at("peak").get<double>();
  figures.budget_bytes += device.at("budget_bytes").get<double>();
  figures.waits += pool.at("waits").get<std::uint64_t>();
  figures.waited_seconds += nanoseconds(pool.at("waited_ns"));
  for (const char* reason : {"paced", "batches"}) {
    figures.held_back += device.at(reason).at("count").get<std::uint64_t>();
    figures.waited_seconds += nanoseconds(device.at(reason).at("total_ns"));
  }
}

std::optional<double> number_in(const json& printed, const char* key) {
  if (!printed.contains(key) || !printed.at(key).is_number()) return std::nullopt;
  return printed.at(key).get<double>();
}

void read_printed(const json& printed, ProgramRun& run) {
  run.framework = printed.value("framework", "");
  run.result = printed.value("outcome", "");
  if (printed.contains("losses")) run.losses = printed.at("losses");
  run.seconds = number_in(printed, "seconds");
  run.peak_bytes = number_in(printed, "peak_reserved_bytes");
}

ProgramRun read_run(const json& j) {
  ProgramRun run;
  run.setup = j.at("setup");
  run.said = j.value("said", "");
  run.stopped = j.value("stopped", false);
  if (j.contains("exit_code") && !j.at("exit_code").is_null()) run.exit_code = j.at("exit_code");
  if (j.contains("printed") && j.at("printed").is_object()) read_printed(j.at("printed"), run);
  if (!j.contains("summary")) return run;
  try {
    if (j.at("summary").is_null()) throw Error("there is none");
    run.weir = read_summary(j.at("summary"));
  } catch (const std::exception& error) {
    run.unreadable = error.what();
  }
  return run;
}

}  // namespace

std::optional<double> SwapInFigures::served_share() const {
  const double all = served_bytes + passed_bytes;
  return all > 0 ? std::optional(served_bytes / all) : std::nullopt;
}

SwapInFigures read_summary(const json& summary) {
  SwapInFigures figures;
  for (const json& device : summary.at("devices")) add_device(device, figures);
  if (summary.at("devices").empty()) throw Error("it names no device");
  return figures;
}

std::optional<double> ProgramRun::served_share() const {
  if (!weir) return std::nullopt;
  return weir->served_share();
}

bool ProgramRun::finished() const { return exit_code == 0 && result == "finished"; }

bool ProgramRun::ran_out() const { return exit_code == kOutOfMemory && result == "out of memory"; }

std::string ProgramRun::outcome() const {
  if (!exit_code) return "not run: " + said;
  if (stopped) return "stopped at its limit";
  if (finished() || ran_out()) return result;
  return "failed (exit " + std::to_string(*exit_code) + ")" + (said.empty() ? "" : ": " + said);
}

const ProgramRun* ProgramFigures::find(std::string_view setup) const {
  const auto at = std::find_if(runs.begin(), runs.end(),
                               [&](const ProgramRun& run) { return run.setup == setup; });
  return at == runs.end() ? nullptr : &*at;
}

std::vector<ProgramFigures> read_programs(const json& figures) {
  std::vector<ProgramFigures> programs;
  for (const json& j : figures.at("programs")) {
    ProgramFigures program;
    program.name = j.at("name");
    program.left_out = j.value("left_out", "");
    for (const json& run : j.at("runs")) program.runs.push_back(read_run(run));
    programs.push_back(std::move(program));
  }
  return programs;
}

bool is_planned(const json& figures, std::string_view name) {
  if (!figures.contains("planned")) return true;
  const json& planned = figures.at("planned");
  return std::find(planned.begin(), planned.end(), name) != planned.end();
}

const ProgramFigures* find_program(const std::vector<ProgramFigures>& programs,
                                   std::string_view name) {
  const auto at = std::find_if(programs.begin(), programs.end(),
                               [&](const ProgramFigures& program) { return program.name == name; });
  return at == programs.end() ? nullptr : &*at;
}

bool with_weir(std::string_view setup) { return setup.starts_with("weir"); }

std::string without_weir(std::string_view setup) {
  return setup.ends_with("_async") ? "plain_async" : "plain";
}

std::string setup_title(std::string_view setup) {
  constexpr std::array kTitles{
      std::pair{"plain", "as it is"},
      std::pair{"enough", "as it is, enough memory"},
      std::pair{"plain_async", "in stream order"},
      std::pair{"weir", "with Weir"},
      std::pair{"weir_async", "with Weir, in stream order"},
      std::pair{"weir_batches", "with Weir, in stream order, batches by NVTX"},
      std::pair{"weir_pluggable", "with Weir, pluggable allocator"},
  };
  for (const auto& [name, title] : kTitles) {
    if (setup == name) return title;
  }
  return std::string(setup);
}

}  // namespace weir::gpu_check
