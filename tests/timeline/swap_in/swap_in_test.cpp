// Timelines of a whole program that preloads libweir.so, on the stand-in driver.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "../../trainer/temporary_directory.hpp"
#include "support/child_process.hpp"
#include "tools/timeline/analysis/index.hpp"
#include "tools/timeline/cupti/library.hpp"
#include "tools/timeline/files/formats.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using weir::testing::ChildProcess;
using weir::testing::Finished;
using weir::testing::Variables;
using Words = std::vector<std::string>;

constexpr std::size_t kBatches = 10;  // of the program

class SwappedIn : public ::testing::Test {
 protected:
  [[nodiscard]] std::string file(std::string_view name) const { return directory_.file(name); }
  /// The program with libweir.so, whose timeline is run.json.
  [[nodiscard]] Finished run(const Words& words, Variables variables) const {
    variables.merge(Variables{{"LD_PRELOAD", SWAP_IN},
                              {"LD_LIBRARY_PATH", STANDIN_FOLDER},
                              {"CUDA_VISIBLE_DEVICES", ""},
                              {"WEIR_TIMELINE", file("run.json")}});
    return ChildProcess(words, {.program = SWAP_IN_PROGRAM, .environment = variables}).wait();
  }
  /// The output of `weir timeline report --json` for it.
  [[nodiscard]] nlohmann::json report() const {
    const Finished report =
        ChildProcess({"timeline", "report", file("run.json"), "--json", "-"}).wait();
    EXPECT_EQ(report.exit_code, 0) << report.err;
    return nlohmann::json::parse(report.out).at("processes").at(0);
  }
  [[nodiscard]] std::vector<TimelineRecord> records_of(TimelineKind kind) const {
    const Timeline timeline = read_timeline(file("run.json"));
    EXPECT_EQ(timeline.processes.size(), 1U);
    std::vector<TimelineRecord> found;
    for (const TimelineRecord& record : timeline.processes.at(0).records) {
      if (record.kind == kind) found.push_back(record);
    }
    return found;
  }
  /// The batches that began during the recording.
  [[nodiscard]] std::vector<std::uint32_t> admitted() const {
    std::vector<std::uint32_t> batches;
    for (const TimelineRecord& record : records_of(TimelineKind::kAdmit)) {
      if (admission_of(record) != TimelineAdmission::kBefore) batches.push_back(record.batch);
    }
    return batches;
  }
  /// The file has batches and memory of the program.
  void expect_batches_and_memory() const {
    std::vector<std::uint32_t> allocating;
    for (const TimelineRecord& record : records_of(TimelineKind::kAllocate)) {
      allocating.push_back(record.batch);
    }
    EXPECT_EQ(admitted().size(), kBatches);
    EXPECT_EQ(allocating, admitted()) << "each allocates once";
  }
  /// It is a page of the program.
  static void expect_page(const std::string& path) {
    const std::string page = weir::testing::read_file(path);
    const bool is_page =
        page.find("<title>Weir timeline of timeline_swap_in_program</title>") != std::string::npos;
    EXPECT_TRUE(is_page) << "without its text, which is long";
    EXPECT_TRUE(page.find("</html>") != std::string::npos);
  }
  /// An environment in which `weir` is in the path.
  static Variables in_path() {
    return {{"PATH", std::filesystem::path(WEIR_TRAIN_PROGRAM).parent_path().string()}};
  }

  const weir::testing::TemporaryDirectory directory_;
};

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

TEST_F(SwappedIn, MemoryBatchesAndKernelsAreInOneFileAndAKernelHasItsBatch) {
  for (const std::string cupti : {STANDIN_OLDER, STANDIN_NEWER}) {
    const Finished program = run({"batches", cupti}, {{"WEIR_CUPTI", cupti}});
    EXPECT_EQ(program.exit_code, 3);
    EXPECT_EQ(program.err, "");
    expect_batches_and_memory();
    std::vector<std::uint32_t> launched;
    for (const auto& record : records_of(TimelineKind::kKernel)) launched.push_back(record.batch);
    EXPECT_EQ(launched, admitted());
    const nlohmann::json process = report();
    EXPECT_EQ(process["summary"]["lost"], 0);
    const auto& rows = process["tasks"][0]["rows"];
    EXPECT_TRUE(std::ranges::any_of(rows, [](const nlohmann::json& row) {
      return row["name"] == "step(float*)" && row["count"] == kBatches;
    })) << rows;
    std::filesystem::remove(file("run.json"));
  }
}

TEST_F(SwappedIn, TheLibraryForProgramsWithTheirOwnAllocatorDoesNothingBesideIt) {
  const std::string cupti = STANDIN_NEWER;
  const Finished program = run({"inject", INJECT_LIBRARY, cupti}, {{"WEIR_CUPTI", cupti}});
  EXPECT_EQ(program.exit_code, 3);
  EXPECT_EQ(program.err,
            "weir: libweir_timeline.so does nothing: libweir.so records this program\n");
  expect_batches_and_memory();
  EXPECT_EQ(records_of(TimelineKind::kKernel).size(), kBatches) << "each once";
  EXPECT_EQ(directory_.entries(), 1U) << "it has no file of its own";
}

TEST_F(SwappedIn, AProgramWhoseMainLeavesBeforeItsThreadsEndsWithTheLastOfThem) {
  for (const std::string& published : {std::string("0"), file("")}) {
    const Finished program =
        run({"leave"}, {{"WEIR_CUPTI", STANDIN_NEWER}, {"WEIR_PUBLISH", published}});
    EXPECT_EQ(program.exit_code, 0);
    EXPECT_EQ(program.err, "");
    EXPECT_EQ(records_of(TimelineKind::kAllocate).size(), 1U);
    EXPECT_TRUE(read_timeline(file("run.json")).processes.at(0).complete);
  }
}

TEST_F(SwappedIn, APartOfARunIsRecordedWhereAProgramInCAsksForIt) {
  const Finished program =
      run({"part", file("run.json")}, {{"WEIR_CUPTI", STANDIN_NEWER}, {"WEIR_TIMELINE", ""}});
  EXPECT_EQ(program.exit_code, 3);
  EXPECT_EQ(program.err, "");
  expect_batches_and_memory();
  EXPECT_EQ(admitted().front(), kBatches + 1);
}

TEST_F(SwappedIn,
       TheLastSecondsAreThereBeforeTheProgramHearsOfAnOutOfMemoryAndALineMakesTheirPage) {
  const std::string last = file("run.oom.pftrace");
  const std::string page = file("run.oom.html");
  const Finished program =
      run({"run-out", last}, {{"WEIR_BUDGET", "8MiB"}, {"WEIR_CUPTI", STANDIN_NEWER}});
  EXPECT_EQ(program.exit_code, 3) << "the file was not there\n" << program.err;
  const std::string command = "weir timeline report '" + last + "' -o '" + page + "'";
  EXPECT_THAT(program.err, HasSubstr("\n  what led to it: " + command + "\n"));
  EXPECT_FALSE(std::filesystem::exists(page));
  const Finished made =
      ChildProcess({"-c", command}, {.program = "/bin/sh", .environment = in_path()}).wait();
  EXPECT_EQ(made.exit_code, 0) << made.err;
  expect_page(page);
  EXPECT_EQ(records_of(TimelineKind::kFailure).size(), 1U);
  EXPECT_EQ(report()["failures"][0]["kind"], "too large");
}

TEST_F(SwappedIn, UnderWeirRunThePageOfAnOutOfMemoryIsMadeEvenIfTheProgramDiesOfIt) {
  const std::string last = file("run.oom.pftrace");
  const std::string page = file("run.oom.html");
  for (const char* word : {"run-out", "die-of-it"}) {
    SCOPED_TRACE(word);
    const Finished weir = ChildProcess({"timeline", "record", "-o", file("run.json"), "--budget",
                                        "8MiB", "--", SWAP_IN_PROGRAM, word, last},
                                       {.environment = {{"WEIR_LIBRARY", SWAP_IN},
                                                        {"LD_LIBRARY_PATH", STANDIN_FOLDER},
                                                        {"CUDA_VISIBLE_DEVICES", ""},
                                                        {"WEIR_CUPTI", STANDIN_NEWER}}})
                              .wait();
    EXPECT_EQ(weir.exit_code, word == std::string_view("run-out") ? 3 : -1) << weir.err;
    EXPECT_EQ(weir.signal, word == std::string_view("run-out") ? 0 : SIGKILL) << weir.err;
    EXPECT_THAT(weir.err, HasSubstr("\nweir: what led to the out-of-memory: " + page + "\n"));
    expect_page(page);
    EXPECT_TRUE(std::filesystem::remove(page));
    EXPECT_TRUE(std::filesystem::remove(last)) << "it stays";
  }
}

/// The toolkit's libcupti finds no driver of its own behind the stand-in.
TEST_F(SwappedIn, WithTheRealLibcuptiAndNoDriverOfItsOwnTheProgramGoesOnAfterOneLine) {
  std::string why;
  const auto places = cupti::cupti_places(process_environment(), cupti::loaded_runtimes());
  const auto library = cupti::open_library(places, why);
  if (library == nullptr) GTEST_SKIP() << "left out: " << why;
  if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) GTEST_SKIP() << "left out: there is a driver";
  const Finished program = run({"batches"}, {{"WEIR_CUPTI", library->path}});
  EXPECT_EQ(program.exit_code, 3);
  EXPECT_THAT(program.err, StartsWith("weir: timeline: kernels and copies are not recorded: "));
  EXPECT_EQ(lines_of(program.err), 1U) << program.err;
  expect_batches_and_memory();
}

}  // namespace
}  // namespace weir::timeline::testing
