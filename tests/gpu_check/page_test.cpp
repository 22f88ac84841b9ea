#include "tools/gpu_check/report/page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu_check/sample.hpp"
#include "tools/gpu_check/facts/facts_bytes.hpp"

namespace weir::gpu_check {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using weir::testing::json;
using weir::testing::made_up_evidence;
using weir::testing::step_in;

std::string page_of(const json& evidence) { return page(evidence, judge(evidence), "x.json"); }

TEST(GpuPage, NamesTheMachineTheBuildAndTheCommands) {
  const std::string text = page_of(made_up_evidence());
  EXPECT_THAT(text, HasSubstr("# Made-up GPU 1000 (test sample), 2000-01-01\n"));
  EXPECT_THAT(text, HasSubstr("| driver | 1.2.3, for CUDA 13.0 |"));
  EXPECT_THAT(text, HasSubstr("| toolkit | 13.0.0, runtime 13.0 |"));
  EXPECT_THAT(text, HasSubstr("| commit | made-up |"));
  EXPECT_THAT(text, HasSubstr("| tests | ok | 2 | 40 s | `weir-gpu tests` |"));
  EXPECT_THAT(text, HasSubstr("[x.json](x.json)"));
}

TEST(GpuPage, IsNamedAfterDeviceDateAndCall) {
  json evidence = made_up_evidence();
  EXPECT_EQ(page_name(evidence), "gpu-made-up-gpu-1000-test-sample-2000-01-01");
  evidence["call"] = "programs-first";
  EXPECT_EQ(page_name(evidence), "gpu-made-up-gpu-1000-test-sample-2000-01-01-programs-first");
  EXPECT_THAT(page_of(evidence), HasSubstr("sample), 2000-01-01, only programs-first\n"));
}

TEST(GpuPage, OfAllCallsHasANameAndAHeadingOfItsOwn) {
  json evidence = made_up_evidence();
  evidence["call"] = kAllCalls;
  EXPECT_EQ(page_name(evidence), "gpu-made-up-gpu-1000-test-sample-2000-01-01-all");
  EXPECT_THAT(page_of(evidence), HasSubstr("sample), 2000-01-01, all calls\n"));
}

TEST(GpuPage, SaysWhereTheCommitDoesNotTellTheCode) {
  json evidence = made_up_evidence();
  EXPECT_THAT(page_of(evidence), Not(HasSubstr("different code")));
  evidence["machine"]["commit"] = "1234567-dirty";
  EXPECT_THAT(
      page_of(evidence),
      HasSubstr("| commit | 1234567-dirty, of a tree with uncommitted changes: calls may be "
                "of different code |\n"));
  evidence["machine"]["commit"] = "unknown";
  EXPECT_THAT(page_of(evidence),
              HasSubstr("| commit | unknown: calls may be of different code |\n"));
}

TEST(GpuPage, ARehearsalCannotPassForAGpu) {
  json evidence = made_up_evidence();
  EXPECT_THAT(page_of(evidence), Not(HasSubstr("ehearsal")));
  evidence["machine"]["rehearsal"] = true;
  EXPECT_EQ(page_name(evidence), "rehearsal-made-up-gpu-1000-test-sample-2000-01-01");
  EXPECT_THAT(page_of(evidence), ::testing::StartsWith("# Rehearsal, without a GPU: Made-up GPU"));
  EXPECT_THAT(page_of(evidence), HasSubstr("\nNothing here ran on a GPU"));
}

TEST(GpuPage, NamesTheCublasAndWhatWasSet) {
  json evidence = made_up_evidence();
  evidence["machine"]["cublas"] = "cuBLAS 9.9.9 in /made/up";
  evidence["machine"]["settings"] = {"NVIDIA_TF32_OVERRIDE=1"};
  const std::string text = page_of(evidence);
  EXPECT_THAT(text, HasSubstr("| matrix products | cuBLAS 9.9.9 in /made/up |\n"));
  EXPECT_THAT(text,
              HasSubstr("| set for unmodified programs alone | `NVIDIA_TF32_OVERRIDE=1` |\n"));
}

TEST(GpuPage, ShowsPoliciesAndKernelsAsTables) {
  const std::string text = page_of(made_up_evidence());
  for (const Comparison& comparison : kComparisons) {
    EXPECT_THAT(text, HasSubstr("### " + std::string(comparison.title)));
  }
  EXPECT_THAT(text, HasSubstr("| barrier | 500.0 | 0.500 (0.250 to 1.000) | - | 40.0 us | 64 MiB | "
                              "25.0% | finished |\n"));
  EXPECT_THAT(text, HasSubstr("| without Weir | 1010.0 | 1.010 (0.505 to 2.020) | - | 30.0 us | "
                              "64 MiB | - | finished |\n"));
  EXPECT_THAT(text, HasSubstr("| throttled | 1000.0 | 1.000 (0.500 to 2.000) | 0.990 (0.495 to "
                              "1.980) | 40.0 us | 64 MiB | 25.0% | finished |\n"));
  EXPECT_THAT(text,
              HasSubstr("| unbounded | 0.0 | - | - | 40.0 us | 64 MiB | 25.0% | out of memory "
                        "in batch 7 |\n"));
  EXPECT_THAT(text,
              HasSubstr("| made_up | 2x3 | 115.0 us | 100.0 us | copy | 1.15 | 1.15 | met |\n"));
  EXPECT_THAT(text, HasSubstr("| copy | 2x3 | 100.0 us | 100.0 us | copy |  |  |  |\n"));
  EXPECT_THAT(text, HasSubstr("| fill_normal | 2^26 | 100.0 us | 100.0 us | copy | 1.00 | 2.50: "
                              "some 60 instructions"));
  EXPECT_THAT(text, Not(HasSubstr("No figures")));
}

TEST(GpuPage, ShowsWhichKernelsAreNotWithinTheirBounds) {
  json evidence = made_up_evidence();
  json& kernels = step_in(evidence, "bench").at("figures").at("kernels");
  kernels[1] = weir::testing::made_up_kernel("slow", "2x3", 150, 100);
  kernels[2] = weir::testing::made_up_kernel("short", "2x3", 3, 2);
  const std::string text = page_of(evidence);
  EXPECT_THAT(text,
              HasSubstr("| slow | 2x3 | 150.0 us | 100.0 us | copy | 1.50 | 1.15 | NOT MET |\n"));
  EXPECT_THAT(text,
              HasSubstr("| short | 2x3 | 3.0 us | 2.0 us | copy | 1.50 | a floor of 2.0 us is "
                        "mostly its launch | NOT MET |\n"));
}

TEST(GpuPage, ShowsProgramsBesideThemselvesWithoutWeir) {
  const std::string text = page_of(made_up_evidence());
  EXPECT_THAT(text, HasSubstr("### PyTorch, transformer\n\nMade-up framework 1.\n\n| setup |"));
  EXPECT_THAT(text, HasSubstr("| as it is | finished | 2.000 s |  | 64 MiB |  |  |  |\n"));
  EXPECT_THAT(text,
              HasSubstr("| with Weir, in stream order | finished | 3.000 s | 1.500 | 64 MiB | "
                        "1 MiB | 99.50% | 5, 1.25 s |\n"));
  EXPECT_THAT(text, HasSubstr("| as it is | out of memory |  |  |  |  |  |  |\n"));
  EXPECT_THAT(text,
              HasSubstr("## Facts\n\n| fact | expected | found | otherwise |\n|---|---|---|---|\n"
                        "| made-up fact | 7 | 8 |  |\n"
                        "| made-up need | yes | yes | made-up harm may be done |\n"));
}

TEST(GpuFacts, MemoryThatOthersGaveBackMeanwhileIsLessThanNothing) {
  EXPECT_EQ(bytes_taken(mib(6).count, mib(2).count), "4 MiB");
  EXPECT_EQ(bytes_taken(mib(2).count, mib(6).count), "-4 MiB");
}

TEST(GpuPage, ShowsWhatTracesCameToOnTheDevice) {
  EXPECT_THAT(page_of(made_up_evidence()),
              HasSubstr("|---|---|---|---|---|---|\n| made_up | round:24 | 2.000 | 5 | 3 | 123 |\n"
                        "| made_up | paged | 1.020 | 5 | 3 | 123 |\n\n## Timelines\n"));
}

TEST(GpuPage, SaysWhichProgramsWereNotRun) {
  json evidence = made_up_evidence();
  json& programs = step_in(evidence, "programs").at("figures").at("programs");
  programs[0]["left_out"] = "PyTorch is not there";
  programs.erase(1);
  const std::string text = page_of(evidence);
  EXPECT_THAT(text, HasSubstr("network\n\nLeft out: PyTorch is not there.\n"));
  EXPECT_THAT(text, HasSubstr("### PyTorch, transformer\n\nNot run.\n"));
}

TEST(GpuPage, NamesTestsThatDidNotPass) {
  json evidence = made_up_evidence();
  json& tests = step_in(evidence, "tests")["figures"]["testsuites"][0]["testsuite"];
  tests[0]["result"] = "SKIPPED";
  EXPECT_THAT(page_of(evidence), HasSubstr("1 test passed.\n\n- skipped: `MadeUp.Passes`\n"));
}

TEST(GpuPage, ComesOutWhateverTheStepsWrote) {
  json evidence = made_up_evidence();
  step_in(evidence, "bench")["figures"] = {{"kernels", "none"}};
  step_in(evidence, "tests").erase("figures");
  step_in(evidence, "tests")["exit_code"] = 139;
  const std::string text = page_of(evidence);
  EXPECT_THAT(text, HasSubstr("The figures of step `bench` are not as expected"));
  EXPECT_THAT(text, HasSubstr("## Tests\n\nNo figures: failed (exit 139).\n"));
}

TEST(GpuPage, VerdictsAreOneLineEach) {
  const std::vector<Verdict> verdicts{{"this holds", State::kMet, "3"},
                                      {"that does not", State::kNotMet, "4"},
                                      {"nobody knows", State::kLeftOut, "no tool"}};
  EXPECT_EQ(verdict_lines(verdicts),
            "met       this holds: 3\nNOT MET   that does not: 4\n"
            "left out  nobody knows: no tool\n");
}

TEST(GpuPage, NothingInACellEndsIt) {
  EXPECT_EQ(markdown_table({{"a", "b"}, {"x|y", "two\nlines"}}),
            "| a | b |\n|---|---|\n| x\\|y | two lines |\n");
}

}  // namespace
}  // namespace weir::gpu_check
