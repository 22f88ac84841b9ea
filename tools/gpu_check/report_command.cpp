#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/error.hpp"
#include "tools/gpu_check/command.hpp"
#include "tools/gpu_check/report/evidence.hpp"
#include "tools/gpu_check/report/merge.hpp"
#include "tools/gpu_check/report/page.hpp"
#include "tools/gpu_check/report/verdicts.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir::gpu_check {
namespace {

/// All that is read of the calls, each of which is a folder or what an earlier report wrote.
std::vector<NamedPath> files_of(std::span<char* const> calls) {
  std::vector<NamedPath> files;
  for (const char* const call : calls) {
    files.push_back({"RUN", call});
    if (!std::filesystem::is_directory(call)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(call)) {
      files.push_back({"RUN", entry.path().string()});
    }
  }
  return files;
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
  const std::string json_path = output / (name + ".json");
  const std::string page_path = output / (name + ".md");
  require_different_files(
      std::array{NamedPath{"OUTPUT-FOLDER", json_path}, NamedPath{"OUTPUT-FOLDER", page_path}},
      files_of({argv + 1, argv + argc - 2}));
  OutputFile json_file("OUTPUT-FOLDER", json_path);
  OutputFile page_file("OUTPUT-FOLDER", page_path);
  // What a step printed need not be UTF-8, as JSON must be.
  json_file.commit(json_text(evidence));
  page_file.commit(page(evidence, verdicts, name + ".json"));
  require_printed(print(verdict_lines(verdicts) + "\n" + json_path + "\n" + page_path + "\n"));
  return holds(verdicts) ? 0 : 1;
}

}  // namespace weir::gpu_check
