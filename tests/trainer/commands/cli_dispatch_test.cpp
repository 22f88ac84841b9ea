// weir-train dispatch as users see it.

#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "support/child_process.hpp"
#include "support/joined_lines.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

const std::vector<std::string> kShort{"dispatch", "--operations",     "20",   "--rounds",
                                      "2",        "--elements-large", "1000", "--elements-small",
                                      "2",        "--frontend",       "1",    "--matrix",
                                      "16",       "--device",         "cpu",  "--json"};

TEST(CliDispatch, PrintsItsTablesAndWritesTheSameFigures) {
  const TemporaryDirectory directory;
  std::vector<std::string> arguments = kShort;
  arguments.push_back(directory.file("figures.json"));
  const Finished end = succeeded(run_weir_train(arguments));
  EXPECT_EQ(joined_lines(end.err, 2),
            "settings: device=cpu (--device), operations=20 (--operations), rounds=2 (--rounds), "
            "elements-large=1000 (--elements-large), elements-small=2 (--elements-small), "
            "frontend=1 (--frontend), matrix=16 (--matrix)\n");
  expect_parts(end.out, {"n = 20 operations", "\n1000 elements", "\n2 elements, a frontend of",
                         "\n16 x 16 matrix product"});
  const auto j = nlohmann::json::parse(read_file(directory.file("figures.json")));
  ASSERT_EQ(j["cases"].size(), 3U);
  for (const auto& c : j["cases"]) EXPECT_EQ(c["rounds"], 2);
  EXPECT_EQ(j["settings"].size(), 7U);
  EXPECT_EQ(j["settings"]["frontend"], (nlohmann::json{{"value", "1"}, {"source", "--frontend"}}));
}

TEST(CliDispatch, EndsWithTheFiguresSoFarWhenInterrupted) {
  for (const char* operations : {"2", "1000000"}) {  // many short rounds, or one long one
    const TemporaryDirectory directory;
    const std::string json = directory.file("figures.json");
    ChildProcess child({"dispatch", "--operations", operations, "--rounds", "1000000", "--json",
                        json, "--matrix", "16"});
    child.await_error_text("settings: ");
    child.send(SIGINT);
    const Finished end = child.wait();
    EXPECT_EQ(end.exit_code, 130) << "signal " << end.signal;
    EXPECT_NE(end.out.find("interrupted: these are the figures so far"), std::string::npos);
    EXPECT_EQ(nlohmann::json::parse(read_file(json))["interrupted"], true);
  }
}

}  // namespace
}  // namespace weir::testing
