// `weir ps` and `weir set` beside programs under libweir.so.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "live_support.hpp"
#include "support/child_process.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using weir::testing::ChildProcess;
using weir::testing::Finished;
using weir::testing::Variables;
using Words = std::vector<std::string>;

/// A program that uses CUDA as a test commands (budget_program.cpp), with libweir.so.
class ToldProgram {
 public:
  explicit ToldProgram(Variables variables)
      : program_({}, {.program = BUDGET_PROGRAM,
                      .environment = with_library(std::move(variables)),
                      .stdin_is_pipe = true}) {}

  [[nodiscard]] std::string pid() const { return std::to_string(program_.pid()); }
  /// Its answer to a line.
  std::string tell(const std::string& line) {
    program_.tell(line + "\n");
    return program_.read_line();
  }
  void send(int signal) const { program_.send(signal); }
  /// Closes its input and waits for its end. Returns the exit code.
  int end() {
    program_.end_input();
    const Finished end = program_.wait();
    return end.signal != 0 ? 128 + end.signal : end.exit_code;
  }

 private:
  static Variables with_library(Variables variables) {
    variables.emplace("LD_PRELOAD", SWAP_IN);
    return variables;
  }

  ChildProcess program_;
};

Finished run_weir(const Place& place, const Words& words) {
  return ChildProcess(words, {.environment = {{"WEIR_PUBLISH", place.path()}}}).wait();
}

Variables in(const Place& place, const std::string& budget = "64MiB") {
  return {{"WEIR_PUBLISH", place.path()}, {"WEIR_BUDGET", budget}};
}

/// Returns the lines of a table with its heading: those of the legend begin with a space.
std::ptrdiff_t rows_of(const std::string& table) {
  std::istringstream lines(table);
  std::ptrdiff_t rows = 0;
  for (std::string line; std::getline(lines, line);) rows += line.starts_with(' ') ? 0 : 1;
  return rows;
}

/// The devices of the only program in `place` from `weir ps`, once `shows` is true of them.
nlohmann::json await_devices(const Place& place,
                             const std::function<bool(const nlohmann::json&)>& shows) {
  constexpr int kTries = 3000;
  nlohmann::json last;
  for (int i = 0; i < kTries; ++i) {
    const Finished ps = run_weir(place, {"ps", "--json", "-"});
    EXPECT_EQ(ps.exit_code, 0) << ps.err;
    last = nlohmann::json::parse(ps.out).at("programs");
    if (last.size() == 1 && !last[0]["devices"].empty() && shows(last[0]["devices"])) {
      return last[0]["devices"];
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ADD_FAILURE() << "never shown so: " << last.dump(1);
  return nullptr;
}

bool any(const nlohmann::json& /*devices*/) { return true; }

/// The message of `weir set` about a program that refuses.
void expect_refused(const Place& place, Words words, int code, const std::string& why) {
  words.insert(words.begin(), "set");
  weir::testing::expect_refused_in_one_line(run_weir(place, words), {why}, code);
}

TEST(WeirSet, LowersAndRaisesTheBudgetOfAProgramThatRuns) {
  const Place place;
  ToldProgram program(in(place));
  ASSERT_EQ(program.tell("take 8"), "took 0");
  ASSERT_EQ(program.tell("take 24"), "took 1");
  ASSERT_EQ(program.tell("take 16"), "took 2");
  ASSERT_EQ(program.tell("free 1"), "freed");
  (void)await_devices(place, any);

  const Finished lower = run_weir(place, {"set", program.pid(), "--budget", "32MiB"});
  EXPECT_EQ(lower.exit_code, 0) << lower.err;
  EXPECT_EQ(lower.out,
            "process " + program.pid() + ", GPU 0: budget 64 MiB -> 32 MiB, 24 MiB in use\n");
  EXPECT_EQ(program.tell("info"), "8 of 32");
  const auto lowered = await_devices(place, [](const nlohmann::json& devices) {
    return devices[0]["budget_bytes"] == mib(32).count;
  });
  EXPECT_EQ(lowered[0]["reserved_bytes"], mib(24).count) << "what was cached went back at once";
  EXPECT_EQ(lowered[0]["device"], "GPU 0");

  const Finished below = run_weir(place, {"set", program.pid(), "--budget", "12MiB"});
  EXPECT_EQ(below.out, "process " + program.pid() +
                           ", GPU 0: budget 32 MiB -> 12 MiB, 24 MiB in use, 12 MiB above it until "
                           "they are freed\n");
  EXPECT_EQ(program.tell("take 1"), "refused");
  EXPECT_EQ(program.tell("free 2"), "freed");
  (void)await_devices(place, [](const nlohmann::json& devices) {
    return devices[0]["used_bytes"] == mib(8).count;
  });
  EXPECT_EQ(program.tell("info"), "4 of 12");

  EXPECT_EQ(program.tell("take 40"), "refused");
  EXPECT_EQ(run_weir(place, {"set", program.pid(), "--budget", "50%"}).exit_code, 0);
  EXPECT_EQ(program.tell("take 40"), "took 3");
  EXPECT_EQ(program.tell("info"), "464 of 512");
  EXPECT_EQ(program.end(), 0);
}

TEST(WeirSet, SetsOneDeviceOrAll) {
  const Place place;
  auto variables = in(place);
  variables.emplace("WEIR_STANDIN_DEVICES", "2");
  ToldProgram program(variables);
  ASSERT_EQ(program.tell("take 8"), "took 0");
  ASSERT_EQ(program.tell("device 1"), "device 1");
  ASSERT_EQ(program.tell("take 8"), "took 1");
  (void)await_devices(place, [](const nlohmann::json& devices) { return devices.size() == 2; });
  EXPECT_EQ(run_weir(place, {"set", program.pid(), "--budget", "16MiB", "--device", "1"}).out,
            "process " + program.pid() + ", GPU 1: budget 64 MiB -> 16 MiB, 8 MiB in use\n");
  const std::string process = "process " + program.pid();
  EXPECT_EQ(run_weir(place, {"set", program.pid(), "--budget", "32MiB"}).out,
            process + ", GPU 0: budget 64 MiB -> 32 MiB, 8 MiB in use\n" + process +
                ", GPU 1: budget 16 MiB -> 32 MiB, 8 MiB in use\n");
  expect_refused(place, {program.pid(), "--budget", "16MiB", "--device", "2"}, 2,
                 "does not use GPU 2: it uses GPU 0, GPU 1");
  const std::string table = run_weir(place, {"ps"}).out;
  EXPECT_EQ(rows_of(table), 3) << "a heading and two devices: " << table;
}

TEST(WeirSet, RefusesWhatIsNoBudgetInOneLine) {
  const Place place;
  ToldProgram program(in(place));
  ASSERT_EQ(program.tell("take 8"), "took 0");
  (void)await_devices(place, any);
  const std::string pid = program.pid();
  expect_refused(place, {pid, "--budget", "1KiB"}, 2, "1 MiB or more");
  expect_refused(place, {pid, "--budget", "500%"}, 2, "up to 100%");
  expect_refused(place, {pid, "--budget", "0.00001%"}, 2, "1 MiB or more");
  expect_refused(place, {pid, "--budget", "2GiB"}, 2, "at most the device's memory, 1 GiB");
  EXPECT_EQ(program.tell("info"), "56 of 64") << "nothing changed";
}

TEST(WeirSet, SaysWhyAProcessCannotBeAsked) {
  const Place place;
  expect_refused(place, {"4194304", "--budget", "8MiB"}, 1, "no process 4194304 runs here");
  expect_refused(place, {std::to_string(getpid()), "--budget", "8MiB"}, 1,
                 "does not run under Weir, or has not used CUDA yet");
  ToldProgram hidden(Variables{{"WEIR_PUBLISH", "0"}});
  ASSERT_EQ(hidden.tell("take 1"), "took 0");
  expect_refused(place, {hidden.pid(), "--budget", "8MiB"}, 1, "was started with WEIR_PUBLISH=0");
  const Place elsewhere;
  ToldProgram other(in(elsewhere));
  ASSERT_EQ(other.tell("take 1"), "took 0");
  expect_refused(place, {other.pid(), "--budget", "8MiB"}, 1,
                 "was started with WEIR_PUBLISH=" + elsewhere.path());
}

TEST(WeirSet, RefusesAnotherUsersProgram) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Place place;
  ASSERT_EQ(chown(place.path().c_str(), 65534, 65534), 0);
  Forked child([&place](const Telling& tell) {
    if (setuid(65534) != 0) return;
    const BlockFile block(place.folders(), "another's");
    tell.and_wait();
  });
  ASSERT_TRUE(child.told());
  expect_refused(place, {std::to_string(child.pid()), "--budget", "8MiB"}, 1,
                 "only that user can set its budget");
  EXPECT_THAT(run_weir(place, {"ps"}).out, HasSubstr("another's")) << "root sees it";
}

TEST(WeirSet, OfAProgramThatIsStoppedGivesUp) {
  const Place place;
  ToldProgram program(in(place));
  ASSERT_EQ(program.tell("take 8"), "took 0");
  (void)await_devices(place, any);
  program.send(SIGSTOP);
  expect_refused(place, {program.pid(), "--budget", "16MiB", "--wait", "0.1"}, 1,
                 "did not answer within 0.1 s: it is stopped; the request was withdrawn");
  program.send(SIGCONT);
  EXPECT_EQ(program.tell("info"), "56 of 64");
}

TEST(WeirSet, AFileThatIsNotAsItWasMadeIsPassedOverAndTheProgramGoesOn) {
  const Place place;
  ToldProgram program(in(place));
  ASSERT_EQ(program.tell("take 8"), "took 0");
  (void)await_devices(place, any);
  const LiveProgram found = place.survey().programs.at(0);
  ASSERT_EQ(truncate((found.folder.path + "/" + found.file).c_str(), 100), 0);
  const Finished ps = run_weir(place, {"ps"});
  EXPECT_EQ(ps.exit_code, 0);
  EXPECT_EQ(ps.out, "no program runs under Weir\n");
  EXPECT_THAT(ps.err, AllOf(HasSubstr("weir: passed over: " + place.path()),
                            HasSubstr("is shorter or longer")));
  EXPECT_EQ(run_weir(place, {"set", program.pid(), "--budget", "16MiB"}).exit_code, 1);
  EXPECT_EQ(program.tell("info"), "56 of 64") << "it goes on, and nothing changed";
  EXPECT_EQ(program.end(), 0);
}

TEST(WeirSet, AnyBytesInTheFileLeaveTheProgramAsItWas) {
  const Place place;
  ToldProgram program(in(place));
  ASSERT_EQ(program.tell("take 8"), "took 0");
  (void)await_devices(place, any);
  const LiveProgram found = place.survey().programs.at(0);
  const std::string path = found.folder.path + "/" + found.file;
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0);
  const auto answered = [&](const LiveRequest& request) {
    EXPECT_EQ(pwrite(file, &request, sizeof request, offsetof(LiveBlock, request)),
              static_cast<ssize_t>(sizeof request));
    LiveAnswer answer;
    while (answer.serial != request.end) {
      EXPECT_EQ(pread(file, &answer, sizeof answer, offsetof(LiveBlock, answer)),
                static_cast<ssize_t>(sizeof answer));
      std::this_thread::yield();
    }
    return static_cast<BudgetCode>(answer.code);
  };
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  EXPECT_EQ(answered({1, 1, 0, 1}), BudgetCode::kOutOfRange);
  EXPECT_EQ(answered({2, 1, kMost, 2}), BudgetCode::kOutOfRange);
  EXPECT_EQ(answered({3, 1, mib(1).count - 1, 3}), BudgetCode::kOutOfRange);
  EXPECT_EQ(answered({4, 0, mib(16).count, 4}), BudgetCode::kNoDevice);
  EXPECT_EQ(answered({5, 2, mib(16).count, 5}), BudgetCode::kNoDevice);
  EXPECT_EQ(answered({kMost, kMost, kMost, kMost}), BudgetCode::kNoDevice);
  close(file);
  EXPECT_EQ(program.tell("info"), "56 of 64");
}

TEST(WeirPs, ListsTenProgramsAndForgetsAKilledOne) {
  const Place place;
  std::vector<std::unique_ptr<ToldProgram>> programs;
  for (int i = 0; i < 10; ++i) {
    programs.push_back(std::make_unique<ToldProgram>(in(place, std::to_string(8 + i) + "MiB")));
    ASSERT_EQ(programs.back()->tell("take 2"), "took 0");
  }
  const auto rows = [&place] {
    const std::string table = run_weir(place, {"ps"}).out;
    return rows_of(table);
  };
  while (rows() != 11) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const std::string table = run_weir(place, {"ps"}).out;
  for (const auto& program : programs) EXPECT_THAT(table, HasSubstr(program->pid()));
  programs.back()->send(SIGKILL);
  const std::string killed = programs.back()->pid();
  EXPECT_EQ(programs.back()->end(), 128 + SIGKILL);
  EXPECT_EQ(place.files(), 10U);
  EXPECT_EQ(rows(), 10);
  EXPECT_EQ(place.files(), 9U) << "what it left is removed";
  expect_refused(place, {killed, "--budget", "16MiB"}, 1, "no process " + killed + " runs here");
  programs.clear();
  EXPECT_EQ(run_weir(place, {"ps"}).out, "no program runs under Weir\n");
}

}  // namespace
}  // namespace weir::timeline::testing
