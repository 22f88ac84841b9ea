#include "tests/timeline/perfetto/processor.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/child_process.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

/// The standard output without newlines at its end.
std::string output_of(const Finished& end) {
  return end.out.substr(0, end.out.find_last_not_of('\n') + 1);
}

/// A program of PATH, such as node, with the variables of this one.
Finished run(Words words) {
  words.insert(words.begin(), {"-c", "\"$0\" \"$@\""});
  Variables variables;
  for (const char* name : {"PATH", "HOME"}) {
    if (const char* value = std::getenv(name)) variables.emplace(name, value);
  }
  return ChildProcess(words, {.program = "/bin/sh", .environment = variables}).wait();
}

}  // namespace

Queried query_traces(const std::vector<Load>& loads) {
  const std::string tests = WEIR_PERFETTO_TESTS;
  const Finished fetched = run({tests + "/fetch_processor", WEIR_PERFETTO_FOLDER});
  if (fetched.exit_code != 0) return {.left_out = fetched.out + fetched.err, .rows = {}};

  Words words{"node", tests + "/trace_processor.js", output_of(fetched)};
  const TemporaryDirectory folder;
  for (const Load& load : loads) {
    if (words.size() > 3) words.emplace_back("--");
    words.push_back(folder.file(std::to_string(words.size()) + ".trace"));
    write_file(words.back(), load.trace);
    words.insert(words.end(), load.queries.begin(), load.queries.end());
  }
  const Finished ran = run(words);
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  Queried queried{.left_out = {}, .rows = nlohmann::json::parse(ran.out, nullptr, false)};
  EXPECT_EQ(queried.rows.size(), loads.size()) << ran.out;
  return queried;
}

}  // namespace weir::testing
