#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "allocator/error.hpp"
#include "tools/gpu_check/command.hpp"
#include "tools/gpu_check/report/evidence.hpp"
#include "tools/gpu_check/report/page.hpp"
#include "tools/gpu_check/report/programs.hpp"
#include "tools/gpu_check/report/verdicts.hpp"

namespace weir::gpu_check {
namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text << std::flush;
  if (!out) throw Error("cannot write " + file.string());
}

}  // namespace

int run_report(int argc, char** argv) {
  if (argc != 4) throw UsageError("report takes RUN-FOLDER OUTPUT-FOLDER YYYY-MM-DD");
  const std::filesystem::path output = argv[2];
  nlohmann::json evidence = gather(argv[1], argv[3]);
  const std::vector<Verdict> verdicts = judge(evidence);
  evidence["verdicts"] = verdicts_json(verdicts);

  // Of a run of one part alone: it must not take the place of a whole one of the same day.
  const bool whole = step_of(evidence, "tests").left_out != kNoSuchStep;
  const std::string name = "gpu-" + device_slug(evidence) + "-" + argv[3] +
                           (whole ? "" : "-" + std::string(kProgramsStep));
  std::filesystem::create_directories(output);
  // What a step printed need not be UTF-8, as JSON must be.
  write(output / (name + ".json"),
        evidence.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  write(output / (name + ".md"), page(evidence, verdicts, name + ".json"));
  std::printf("%s\n%s\n%s\n", verdict_lines(verdicts).c_str(), (output / (name + ".json")).c_str(),
              (output / (name + ".md")).c_str());
  return holds(verdicts) ? 0 : 1;
}

}  // namespace weir::gpu_check
