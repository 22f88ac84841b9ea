// `weir run` as users see it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "elf_bytes.hpp"
#include "weir_process.hpp"

namespace weir::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

/// The line about the tests' program, which uses no CUDA.
constexpr const char* kNoCuda =
    "weir: there is no summary: the program used no CUDA, or ended without writing one\n";

TEST(WeirRun, PassesStandardOutputAndExitCodesOnAndSaysThatThereWasNoCuda) {
  for (const int code : {0, 1, 2, 127, 255}) {
    const Finished weir = run_weir(run_words({}, {"say", "hello", "exit", std::to_string(code)}));
    EXPECT_EQ(weir.exit_code, code);
    EXPECT_EQ(weir.out, "hello\n");
    EXPECT_EQ(after_allocator(weir.err), kNoCuda);
  }
}

TEST(WeirRun, EndsByTheSignalThatEndedTheProgram) {
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT, SIGTERM, SIGINT, SIGPIPE, SIGUSR1}) {
    const Finished weir = run_weir(run_words({}, {"raise", std::to_string(signal)}));
    EXPECT_EQ(weir.signal, signal);
    const std::string err = after_allocator(weir.err);
    EXPECT_EQ(std::ranges::count(err, '\n'), 1) << err;
    EXPECT_THAT(err, HasSubstr("there is no summary: SIG"));
  }
}

TEST(WeirRun, FlagsReachTheProgramAsVariablesAndBeatTheEnvironment) {
  const Finished weir = run_weir(
      run_words({"--budget", "80%", "--policy=backstop", "--run-ahead", "20ms", "--pool", "naive",
                 "--batch-range", "step", "--sync-free", "--max-wait", "2s", "--log", "error"},
                {"print", "WEIR_BUDGET", "print", "WEIR_POLICY", "print", "WEIR_RUN_AHEAD", "print",
                 "WEIR_POOL", "print", "WEIR_BATCH_RANGE", "print", "WEIR_SYNC_FREE", "print",
                 "WEIR_MAX_WAIT", "print", "WEIR_LOG", "print", "NVTX_INJECTION64_PATH"}),
      {{"WEIR_BUDGET", "1GiB"}, {"WEIR_POLICY", "nonsense"}});
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  EXPECT_EQ(weir.out,
            "WEIR_BUDGET=80%\nWEIR_POLICY=backstop\nWEIR_RUN_AHEAD=20ms\nWEIR_POOL=naive\n"
            "WEIR_BATCH_RANGE=step\nWEIR_SYNC_FREE=1\nWEIR_MAX_WAIT=2s\nWEIR_LOG=error\n"
            "NVTX_INJECTION64_PATH=" FAKE_LIBRARY "\n");
}

TEST(WeirRun, AProgramWithoutCudaIsRemarkedUnlessOnlyErrorsAreAskedFor) {
  EXPECT_EQ(after_allocator(run_weir(run_words({"--log", "info"}, {})).err), kNoCuda);
  EXPECT_EQ(after_allocator(run_weir(run_words({"--log", "error"}, {})).err), "");
}

TEST(WeirRun, TheSummaryIsAFewLinesUnlessAskedForWhole) {
  const Finished brief = run_weir(run_words({}, {"summary"}));
  // One line of the process. For each of its two devices: two of figures, one of what awaited it,
  // and one of advice.
  EXPECT_EQ(std::ranges::count(after_allocator(brief.err), '\n'), 9) << brief.err;
  const Finished whole = run_weir(run_words({"--details"}, {"summary"}));
  EXPECT_THAT(whole.err, HasSubstr("  served by Weir              300 MiB in 31 calls"));
}

TEST(WeirRun, ScriptsAndProgramsInPathAreRun) {
  const TemporaryDirectory directory;
  const std::string script = directory.file("script");
  write_file(script, "#!/usr/bin/env sh\necho \"script $1\"\nexit 9\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const Finished by_path = run_weir(run_words({}, {"one"}, script));
  EXPECT_EQ(by_path.out, "script one\n") << by_path.err;
  EXPECT_EQ(by_path.exit_code, 9);
  const Finished by_name =
      run_weir(run_words({}, {"two"}, "script"), {{"PATH", directory.file("") + ":/usr/bin:/bin"}});
  EXPECT_EQ(by_name.out, "script two\n") << by_name.err;
}

/// An executable file with these contents in `directory`, readable by everybody.
std::string script_in(const TemporaryDirectory& directory, const std::string& name,
                      const std::string& contents) {
  std::string path = directory.file(name);
  write_file(path, contents);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST(WeirRun, AScriptThatNamesNoInterpreterRunsAsInAShell) {
  const TemporaryDirectory directory;
  const std::string script =
      script_in(directory, "bare", "echo \"$0 $#\"; echo \"$2\"\nenv | grep LD_PRELOAD\nexit 9\n");
  const Finished weir = run_weir(run_words({}, {"one", "two words"}, script));
  EXPECT_EQ(weir.out, script + " 2\ntwo words\nLD_PRELOAD=" FAKE_LIBRARY "\n") << weir.err;
  EXPECT_EQ(weir.exit_code, 9);
  EXPECT_EQ(after_allocator(weir.err), kNoCuda);
  const Finished by_name =
      run_weir(run_words({}, {}, "bare"), {{"PATH", directory.file("") + ":/usr/bin:/bin"}});
  EXPECT_THAT(by_name.out, HasSubstr("/bare 0\n")) << by_name.err;
  const std::string by_env = script_in(directory, "by-env", "#!/usr/bin/env bare\n");
  const Finished env =
      run_weir(run_words({}, {}, by_env), {{"PATH", directory.file("") + ":/usr/bin:/bin"}});
  EXPECT_THAT(env.out, HasSubstr("/bare 1\n")) << env.err;
  EXPECT_EQ(run_weir(run_words({}, {}, script_in(directory, "empty", ""))).exit_code, 0);
}

TEST(WeirRun, WordsAfterTheMarkAreTheProgramsWhateverTheyLookLike) {
  const Finished weir = run_weir(run_words({}, {"say", "--help", "say", "--", "exit", "4"}));
  EXPECT_EQ(weir.out, "--help\n--\n");
  EXPECT_EQ(weir.exit_code, 4);
}

TEST(WeirRun, PrintsTheSummaryOnStandardErrorAfterTheProgram) {
  const TemporaryDirectory temporary;
  const Finished weir = run_weir(run_words({}, {"summary", "say", "done", "exit", "3"}),
                                 {{"TMPDIR", temporary.file("")}});
  EXPECT_EQ(weir.exit_code, 3);
  EXPECT_EQ(weir.out, "done\n");
  EXPECT_THAT(after_allocator(weir.err), ::testing::MatchesRegex("weir: process [0-9]+, (.|\n)*"));
  EXPECT_THAT(weir.err, HasSubstr("% served by Weir\n"));
  EXPECT_EQ(temporary.entries(), 0U) << "the folder for summaries is left";
}

TEST(WeirRun, ASummaryOfAProgramThatASignalEndedIsPrinted) {
  const Finished weir = run_weir(run_words({}, {"summary", "raise", std::to_string(SIGTERM)}));
  EXPECT_EQ(weir.signal, SIGTERM);
  EXPECT_THAT(weir.err, HasSubstr("served by Weir"));
  EXPECT_THAT(weir.err, Not(HasSubstr("no summary")));
}

TEST(WeirRun, ASummaryThatIsCutOffIsRemarked) {
  const Finished weir = run_weir(run_words({}, {"cut", "exit", "5"}));
  EXPECT_EQ(weir.exit_code, 5);
  EXPECT_THAT(after_allocator(weir.err),
              ::testing::MatchesRegex("weir: the summary [0-9]+.json is incomplete.*\n"));
}

TEST(WeirRun, NothingIsLeftBehindHoweverTheProgramEnds) {
  const TemporaryDirectory temporary;
  const Variables variables{{"TMPDIR", temporary.file("")}};
  (void)run_weir(run_words({}, {"raise", std::to_string(SIGKILL)}), variables);
  EXPECT_EQ(temporary.entries(), 0U);
  (void)run_weir(run_words({}, {"cut", "raise", std::to_string(SIGINT)}), variables);
  EXPECT_EQ(temporary.entries(), 0U);
  ChildProcess weir(run_words({}, {"catch"}), {.environment = with_library(variables)});
  weir.await_error_text("ready");
  weir.send(SIGTERM);
  EXPECT_EQ(weir.wait().exit_code, 0);
  EXPECT_EQ(temporary.entries(), 0U);
}

TEST(WeirRun, WritesTheSummaryAsJsonOverAnOldFile) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("summary.json");
  write_file(json, "old");
  const Finished weir = run_weir(run_words({"--json", json, "--budget", "80%"}, {"summary"}));
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  EXPECT_EQ(Json::parse(read_file(json)).at("pool"), "round");
  EXPECT_EQ(Json::parse(read_file(json)).at("settings").at("budget").at("source"), "--budget");
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(WeirRun, SeveralProcessesAreAnArrayWithTheProgramFirst) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("summary.json");
  const Finished weir =
      run_weir(run_words({"--json", json}, {"children", "2", "summary", "process"}));
  const Json all = Json::parse(read_file(json));
  ASSERT_EQ(all.size(), 3U) << weir.err;
  EXPECT_EQ(std::to_string(all[0].at("process").get<int>()) + "\n", weir.out);
  std::size_t tables = 0;
  for (std::size_t at = 0; (at = weir.err.find("weir: process", at)) != std::string::npos; ++at) {
    ++tables;
  }
  EXPECT_EQ(tables, 3U);
}

TEST(WeirRun, OneFileForEachProcessWhereTheNameHasItsNumber) {
  const TemporaryDirectory directory;
  const Finished weir =
      run_weir(run_words({"--json", directory.file("%p.json")}, {"children", "2", "summary"}));
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  EXPECT_EQ(directory.entries(), 3U);
  for (const auto& entry : std::filesystem::directory_iterator(directory.file(""))) {
    const Json json = Json::parse(read_file(entry.path().string()));
    EXPECT_EQ(entry.path().stem(), std::to_string(json.at("process").get<int>()));
  }
}

TEST(WeirRun, TheVariableForTheSummaryIsTheFlagsOtherName) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("summary.json");
  (void)run_weir(run_words({}, {"summary"}), {{"WEIR_SUMMARY", json}});
  EXPECT_TRUE(Json::accept(read_file(json)));
}

TEST(WeirRun, WithoutASummaryTheFileIsAnEmptyArrayAndNoOldOne) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("summary.json");
  write_file(json, "old");
  (void)run_weir(run_words({"--json", json}, {}));
  EXPECT_EQ(read_file(json), "[]\n");
}

TEST(WeirRun, AFileThatFailsAtTheEndIsSaidAndDoesNotHideTheProgramsExitCode) {
  for (const int code : {0, 7}) {
    const Finished weir =
        run_weir(run_words({"--json", "/dev/full"}, {"summary", "exit", std::to_string(code)}));
    EXPECT_EQ(weir.exit_code, code == 0 ? 1 : code);
    EXPECT_THAT(weir.err, EndsWith("No space left on device)\n"));
  }
}

TEST(WeirRun, ASignalFromAProcessReachesTheProgramOnce) {
  ChildProcess weir(run_words({}, {"catch", "exit", "7"}), {.environment = with_library({})});
  weir.await_error_text("ready");
  struct Named {
    int signal;
    const char* name;
  };
  for (const Named& one :
       {Named{SIGHUP, "SIGHUP"}, Named{SIGINT, "SIGINT"}, Named{SIGQUIT, "SIGQUIT"},
        Named{SIGUSR1, "SIGUSR1"}, Named{SIGUSR2, "SIGUSR2"}, Named{SIGCONT, "SIGCONT"}}) {
    weir.send(one.signal);
    weir.await_error_text("got " + std::string(one.name) + "\n");
  }
  weir.send(SIGTERM);
  const Finished ended = weir.wait();
  EXPECT_EQ(ended.exit_code, 7);
  EXPECT_EQ(after_allocator(ended.err),
            "ready\ngot SIGHUP\ngot SIGINT\ngot SIGQUIT\ngot SIGUSR1\ngot SIGUSR2\ngot SIGCONT\n"
            "got SIGTERM\n" +
                std::string(kNoCuda));
}

TEST(WeirRun, ASignalThatTheProgramDiesOfEndsBoth) {
  ChildProcess weir(run_words({}, {"-c", "echo ready >&2; exec sleep 90"}, "/bin/sh"),
                    {.environment = with_library({})});
  weir.await_error_text("ready");
  weir.send(SIGTERM);
  EXPECT_EQ(weir.wait().signal, SIGTERM);
}

}  // namespace
}  // namespace weir::testing
