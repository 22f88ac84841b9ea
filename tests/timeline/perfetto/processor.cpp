#include "tests/timeline/perfetto/processor.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace weir::testing {
namespace {

struct Ran {
  int status = 0;
  std::string output;
};

Ran run(const std::string& command) {
  Ran ran;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {.status = -1, .output = "popen failed"};
  std::array<char, 4096> part;
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe)) {
    ran.output.append(part.data(), got);
  }
  const int status = ::pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  while (!ran.output.empty() && ran.output.back() == '\n') ran.output.pop_back();
  return ran;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

}  // namespace

Queried query_traces(const std::vector<Load>& loads) {
  const std::string tests = WEIR_PERFETTO_TESTS;
  const Ran fetched =
      run(quoted(tests + "/fetch_processor") + " " + quoted(WEIR_PERFETTO_FOLDER) + " 2>&1");
  if (fetched.status != 0) return {.left_out = fetched.output, .rows = {}};

  std::string command =
      "node " + quoted(tests + "/trace_processor.js") + " " + quoted(fetched.output);
  std::vector<std::filesystem::path> paths;
  for (const Load& load : loads) {
    paths.push_back(std::filesystem::temp_directory_path() /
                    ("weir_processor_" + std::to_string(::getpid()) + "_" +
                     std::to_string(paths.size()) + ".trace"));
    std::ofstream(paths.back(), std::ios::binary) << load.trace;
    command += (paths.size() == 1 ? " " : " -- ") + quoted(paths.back().string());
    for (const std::string& query : load.queries) command += " " + quoted(query);
  }
  const Ran ran = run(command);
  for (const auto& path : paths) std::filesystem::remove(path);
  EXPECT_EQ(ran.status, 0) << ran.output;
  Queried queried{.left_out = {}, .rows = nlohmann::json::parse(ran.output, nullptr, false)};
  EXPECT_EQ(queried.rows.size(), loads.size()) << ran.output;
  return queried;
}

}  // namespace weir::testing
