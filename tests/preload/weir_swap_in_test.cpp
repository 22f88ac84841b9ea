// `weir` with the real library, on the stand-in for a GPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "weir_process.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Variables on_standin() {
  return {{"WEIR_LIBRARY", ""}, {"LD_LIBRARY_PATH", STANDIN_FOLDER}, {"CUDA_VISIBLE_DEVICES", ""}};
}

TEST(WeirSwapIn, TheLibraryOfTheBuildIsFoundWithoutBeingNamed) {
  EXPECT_EQ(run_weir({"info", "--library"}, on_standin()).out, SWAP_IN_LIBRARY "\n");
}

TEST(WeirSwapIn, AProgramThatUsesCudaLeavesItsFigures) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("summary.json");
  const Finished weir = run_weir(
      run_words({"--budget", "50%", "--json", json}, {"legacy"}, STANDIN_PROGRAM), on_standin());
  // Not its exit code: it checks that the driver has all memory back, some of which the pool keeps.
  ASSERT_EQ(weir.signal, 0);
  EXPECT_THAT(weir.err, HasSubstr("served by Weir"));
  const Json device = Json::parse(read_file(json)).at("devices").at(0);
  EXPECT_GT(device.at("served_bytes"), 0);
  EXPECT_EQ(device.at("budget_bytes").get<std::uint64_t>() * 2, device.at("total_bytes"));
}

TEST(WeirSwapIn, AProgramWhoseEveryRequestWasRefusedLeavesItsFigures) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("summary.json");
  const Finished weir =
      run_weir(run_words({"--budget", "20MiB", "--json", json}, {"exit-refused"}, ENDING_PROGRAM),
               on_standin());
  EXPECT_EQ(weir.exit_code, 0);
  EXPECT_THAT(weir.err, HasSubstr("1 TiB were requested, more than the whole budget of 20 MiB"));
  EXPECT_THAT(weir.err, HasSubstr("1 request found no memory"));
  EXPECT_EQ(Json::parse(read_file(json)).at("devices").at(0).at("served_bytes"), 0);
}

TEST(WeirSwapIn, ASummaryThatNoLauncherAskedForReplacesNothingButASummary) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("file");
  Variables variables = on_standin();
  // Set for the program alone; `weir run` would use it itself.
  const auto run_to = [&] {
    return run_weir(
        run_words({}, {"-c", "WEIR_SUMMARY=" + file + " exec " STANDIN_PROGRAM " legacy"},
                  "/bin/sh"),
        variables);
  };
  write_file(file, "#!/bin/sh\n");
  EXPECT_THAT(run_to().err, HasSubstr("WEIR_SUMMARY='" + file + "' is not allowed"));
  EXPECT_EQ(read_file(file), "#!/bin/sh\n");
  for (int i = 0; i < 2; ++i) {  // the second replaces the first's
    std::filesystem::remove(i == 0 ? file : file + ".none");
    (void)run_to();
    EXPECT_TRUE(Json::accept(read_file(file)));
  }
}

TEST(WeirSwapIn, AProgramThatUsesNoCudaHasNoSummary) {
  const Finished weir = run_weir(run_words({}, {"exit", "3"}), on_standin());
  EXPECT_EQ(weir.exit_code, 3);
  EXPECT_EQ(after_allocator(weir.err),
            "weir: there is no summary: the program used no CUDA, or ended without writing one\n");
}

}  // namespace
}  // namespace weir::testing
