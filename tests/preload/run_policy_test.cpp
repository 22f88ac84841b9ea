// The decisions of `weir run`: the program's environment, signals, and its last output.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "sample_summary.hpp"
#include "support/environment.hpp"
#include "tools/weir/run/child.hpp"
#include "tools/weir/run/environment.hpp"
#include "tools/weir/run/remarks.hpp"
#include "tools/weir/run/summary_file.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using weir::testing::environment_of;
using weir::testing::sample_summary;
using weir::testing::TemporaryDirectory;
using weir::testing::write_file;

const Preload kPreload{.library = "/lib/libweir.so", .summary = "/tmp/x/%p.json", .flags = {}};

auto named(const char* name) { return Field("name", &Variable::name, name); }

TEST(RunEnvironment, SetsNothingForFrameworksUnlessAsked) {
  const Prepared prepared = environment_for(kPreload, environment_of({}));
  EXPECT_THAT(prepared.variables, UnorderedElementsAre(Variable{"LD_PRELOAD", "/lib/libweir.so"},
                                                       Variable{"WEIR_SUMMARY", "/tmp/x/%p.json"},
                                                       Variable{"WEIR_CHECKED", "1"}));
  EXPECT_THAT(prepared.allocator, StartsWith("allocator: frameworks keep"));
}

TEST(RunEnvironment, HasTheVariablesOfTheAllocatorThatIsAskedFor) {
  Preload preload = kPreload;
  preload.allocator = {AllocatorMode::kAsync, preload::TorchWay::kAsync, {}};
  const Prepared prepared = environment_for(preload, environment_of({}));
  EXPECT_THAT(prepared.variables, Contains(named("LD_PRELOAD")));
  EXPECT_THAT(prepared.variables, Contains(Variable{"TF_GPU_ALLOCATOR", "cuda_malloc_async"}));
  EXPECT_THAT(prepared.allocator, StartsWith("allocator: PyTorch, JAX and"));
}

TEST(RunEnvironment, PreloadsBeforeWhatIsPreloadedAlready) {
  const Prepared prepared =
      environment_for(kPreload, environment_of({{"LD_PRELOAD", "/lib/libjemalloc.so"}}));
  EXPECT_THAT(prepared.variables,
              Contains(Variable{"LD_PRELOAD", "/lib/libweir.so:/lib/libjemalloc.so"}));
}

TEST(RunEnvironment, PreloadsOneCopyOfTheLibrary) {
  const auto preloaded = [](const char* before) {
    return environment_for(kPreload, environment_of({{"LD_PRELOAD", before}})).variables;
  };
  EXPECT_THAT(preloaded("/lib/libweir.so"), Contains(Variable{"LD_PRELOAD", "/lib/libweir.so"}));
  EXPECT_THAT(
      preloaded("/lib/a.so: /other/libweir.so b.so:libweir.so:/lib/notlibweir.so:"),
      Contains(Variable{"LD_PRELOAD", "/lib/libweir.so:/lib/a.so:b.so:/lib/notlibweir.so"}));
}

TEST(RunEnvironment, NvtxIsTakenOnlyForABatchRange) {
  Preload preload = kPreload;
  EXPECT_THAT(environment_for(preload, environment_of({})).variables,
              Not(Contains(named("NVTX_INJECTION64_PATH"))));
  preload.batch_range = true;
  EXPECT_THAT(environment_for(preload, environment_of({})).variables,
              Contains(Variable{"NVTX_INJECTION64_PATH", "/lib/libweir.so"}));
  EXPECT_THAT(
      environment_for(preload, environment_of({{"NVTX_INJECTION64_PATH", "mine"}})).variables,
      Not(Contains(named("NVTX_INJECTION64_PATH"))));
}

TEST(RunEnvironment, ChangesReplaceWhatWasThereAndLeaveTheRest) {
  const std::array<const char*, 5> current{"A=1", "AB=2", "A=3", "EMPTY=", nullptr};
  EXPECT_THAT(with_variables(current.data(), {{"A", "new=value"}, {"C", ""}}),
              ElementsAre("AB=2", "EMPTY=", "A=new=value", "C="));
}

constexpr pid_t kChild = 100;
constexpr pid_t kSender = 200;

TEST(RunSignals, WhatAProcessSentIsHandedOnAndWhatATerminalSentIsNot) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGALRM}) {
    EXPECT_EQ(respond(signal, SI_USER, kSender, kChild), (Response{.forward = true}));
    EXPECT_EQ(respond(signal, SI_QUEUE, kSender, kChild), (Response{.forward = true}));
    EXPECT_EQ(respond(signal, SI_KERNEL, 0, kChild), Response{});
  }
}

TEST(RunSignals, StoppingStopsBoth) {
  EXPECT_EQ(respond(SIGTSTP, SI_USER, kSender, kChild), (Response{.forward = true, .stop = true}));
  EXPECT_EQ(respond(SIGTSTP, SI_KERNEL, 0, kChild), (Response{.stop = true}));
}

TEST(RunSignals, TheChildsOwnAreNotHandedBack) {
  EXPECT_EQ(respond(SIGCHLD, CLD_EXITED, kChild, kChild), Response{});
  EXPECT_EQ(respond(SIGCHLD, SI_USER, kSender, kChild), Response{});
  EXPECT_EQ(respond(SIGTERM, SI_USER, kChild, kChild), Response{});
  EXPECT_EQ(respond(SIGTSTP, SI_USER, kChild, kChild), Response{});
}

/// A summary of a program that ran ahead: 80 MiB allocated, 370 MiB held, 380 MiB reserved.
preload::Summary run_ahead_summary() {
  preload::Summary summary;
  summary.policy = "throttled";
  preload::DeviceSummary device;
  device.pool.allocated.peak = mib(80);
  device.pool.awaiting.peak = mib(300);
  device.pool.held.peak = mib(370);
  device.pool.reserved.peak = mib(380);
  device.pools = {{.serves = "all",
                   .kind = "round",
                   .allocated = mib(80),
                   .queued = mib(300),
                   .needed = mib(370),
                   .reserved = mib(380)}};
  summary.devices.push_back(device);
  return summary;
}

TEST(RunReport, ASummaryIsInThreeLinesAndOneOfAdvice) {
  preload::Summary summary = sample_summary();
  summary.devices.resize(1);
  preload::DeviceSummary& device = summary.devices.front();
  device.pool.allocated.peak = device.pool.held.peak = mib(90);
  device.pool.reserved.peak = mib(200);
  device.pools.front().allocated = device.pools.front().needed = mib(90);
  device.pools.front().reserved = mib(200);
  EXPECT_EQ(
      brief(summary),
      "weir: process 4242, /usr/bin/python3: pool round, policy throttled\n"
      "  device 0: peak allocated 90 MiB, reserved 200 MiB of the budget 12 GiB, 75.0% served "
      "by Weir\n"
      "  waited 145 times, 9.120 s in all; 27 requests failed\n"
      "  try --pool best_fit: fragmentation is 55.0%\n");
}

TEST(RunReport, ALineSaysWhatAwaitedTheDevice) {
  preload::Summary summary = run_ahead_summary();
  EXPECT_THAT(brief(summary),
              HasSubstr("\n  awaiting the device: at most 300 MiB, freed but still used by queued "
                        "work\n  waited"));
  summary.devices.front().pools.front().needed = mib(90);
  EXPECT_THAT(brief(summary), Not(HasSubstr("awaiting")));
}

TEST(RunReport, AHintIsSaidOnlyWhereThereIsNoSummary) {
  const auto all = remarks({.exit_code = 1}, {}, "the hint");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1], (Remark{LogLevel::kWarn, "the hint"}));
  Collected collected;
  collected.summaries.push_back({sample_summary(), {}});
  EXPECT_THAT(remarks({}, collected, "the hint"), IsEmpty());
}

TEST(RunReport, SaysThatNoBatchWasMarkedForAPolicy) {
  Collected collected;
  collected.summaries.push_back({run_ahead_summary(), {}});
  collected.summaries.front().summary.policy = "barrier";
  collected.summaries.push_back(collected.summaries.front());  // said once, of two processes too
  EXPECT_THAT(remarks({}, collected),
              ElementsAre(Remark{LogLevel::kWarn,
                                 "no batch was marked, so policy barrier held nothing back "
                                 "(--batch-range marks batches)"}));
}

TEST(RunReport, IsSilentWhereThereIsASummary) {
  Collected collected;
  collected.summaries.push_back({sample_summary(), {}});
  EXPECT_THAT(remarks({}, collected), IsEmpty());
  EXPECT_THAT(remarks({.signal = SIGTERM}, collected), IsEmpty());
}

TEST(RunReport, SignalsHaveNamesOrNumbers) {
  EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_EQ(signal_name(SIGRTMIN + 3), "signal " + std::to_string(SIGRTMIN + 3));
}

TEST(SummaryFile, IsReadBackAsItWasWritten) {
  const std::string json = to_json(sample_summary());
  const auto summary = parse_summary(json);
  ASSERT_TRUE(summary);
  EXPECT_EQ(to_json(*summary), json);
  EXPECT_EQ(to_text(*summary), to_text(sample_summary()));
}

TEST(SummaryFile, WhatIsCutOffOrSomethingElseIsNoSummary) {
  const std::string json = to_json(sample_summary());
  for (std::size_t size = 0; size + 1 < json.size(); ++size) {
    ASSERT_FALSE(parse_summary(json.substr(0, size))) << size;
  }
  for (const char* other : {"[]", "{}", "1", R"({"process":"x"})", "null"}) {
    EXPECT_FALSE(parse_summary(other)) << other;
  }
}

TEST(SummaryFile, TheProgramsOwnComesBeforeTheOthers) {
  const TemporaryDirectory folder;
  preload::Summary summary;
  for (const std::uint64_t process : {30U, 4U, 20U}) {
    summary.process = process;
    write_file(folder.file(std::to_string(process) + ".json"), to_json(summary));
  }
  write_file(folder.file("7.json"), "{");
  write_file(folder.file("note.txt"), "not mine");
  const Collected collected = collect_summaries(folder.file(""), 20);
  std::vector<std::uint64_t> processes;
  for (const SummaryFile& file : collected.summaries) processes.push_back(file.summary.process);
  EXPECT_THAT(processes, ElementsAre(20, 4, 30));
  EXPECT_THAT(collected.unreadable, ElementsAre("7.json"));
}

TEST(SummaryFile, OneIsAnObjectAndSeveralOrNoneAreAnArray) {
  EXPECT_EQ(join_summaries({{{}, "{1}\n"}}), "{1}\n");
  EXPECT_EQ(join_summaries({{{}, "{1}\n"}, {{}, "{2}\n"}}), "[{1},{2}]\n");
  EXPECT_EQ(join_summaries({}), "[]\n");
}

TEST(SummaryFile, IsIndentedAndNamesTheFlagsThatSetVariables) {
  const FlagSources flags{{"WEIR_BUDGET", "--budget"}, {"WEIR_POLICY", "--policy"}};
  const std::string one = to_json(sample_summary());
  const std::string shown = indented(one, flags);
  EXPECT_THAT(shown, StartsWith("{\n  \"process\": 4242,\n"));
  EXPECT_THAT(shown, HasSubstr("\"budget\": {\n      \"value\": \"80%\",\n      \"source\": "
                               "\"--budget\"\n"));
  EXPECT_THAT(shown, HasSubstr("\"source\": \"default\""));
  const auto summary = parse_summary(shown);
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->devices.size(), 2U);
  EXPECT_EQ(to_text(*summary), to_text(sample_summary()));
  EXPECT_THAT(indented("[" + one + "," + one + "]", flags), Not(HasSubstr("WEIR_BUDGET")));
  EXPECT_EQ(indented("[]\n", flags), "[]\n");
}

TEST(SummaryOutput, EveryMarkBecomesTheNumber) {
  EXPECT_EQ(with_process("a%p/%p%p.json", 12), "a12/1212.json");
  EXPECT_EQ(with_process("plain", 12), "plain");
}

}  // namespace
}  // namespace weir::cli
