#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "allocator/error.hpp"
#include "tools/gpu_check/command.hpp"
#include "tools/gpu_check/report/evidence.hpp"
#include "tools/gpu_check/report/merge.hpp"
#include "tools/gpu_check/report/page.hpp"
#include "tools/gpu_check/report/verdicts.hpp"

namespace weir::gpu_check {
namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text << std::flush;
  if (!out) throw Error("cannot write " + file.string());
}

/// Whether it has the form YYYY-MM-DD. It is a part of the names of files.
bool is_date(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00";
  return std::equal(text.begin(), text.end(), kForm.begin(), kForm.end(), [](char c, char form) {
    return form == '0' ? '0' <= c && c <= '9' : c == form;
  });
}

}  // namespace

int run_report(int argc, char** argv) {
  if (argc < 4) throw UsageError("report takes RUN... OUTPUT-FOLDER YYYY-MM-DD");
  const std::filesystem::path output = argv[argc - 2];
  const std::string date = argv[argc - 1];
  if (!is_date(date)) throw UsageError("'" + date + "' is no date YYYY-MM-DD");
  std::vector<nlohmann::json> calls;
  for (int i = 1; i < argc - 2; ++i) calls.push_back(read_call(argv[i], date));
  nlohmann::json evidence = merge_calls(calls, date);
  const std::vector<Verdict> verdicts = judge(evidence);
  evidence["verdicts"] = verdicts_json(verdicts);

  const std::string name = page_name(evidence);
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
