// `weir top` as a process: once, and on a terminal.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <array>
#include <csignal>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "live_support.hpp"
#include "trainer/child_process.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using weir::testing::ChildProcess;
using weir::testing::Finished;
using weir::testing::Variables;

constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l";
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";

/// A block of this process with samples of the last seconds.
class Published {
 public:
  explicit Published(const Place& place, const std::string& name = "train.py")
      : block_(place.folders(), name) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const auto now_ns = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U;
    for (std::uint64_t i = 0; i < 9; ++i) {
      block_.append({.time_ns = now_ns - (8 - i) * 250'000'000U,
                     .budget = 8ULL << 30U,
                     .allocated = i << 20U,
                     .reserved = 2ULL << 30U,
                     .settled = 5 * i});
    }
  }

 private:
  BlockFile block_;
};

Finished run_top(const Place& place, std::vector<std::string> words, Variables variables = {}) {
  words.insert(words.begin(), "top");
  variables.emplace("WEIR_PUBLISH", place.path());
  return ChildProcess(words, {.environment = std::move(variables)}).wait();
}

TEST(WeirTop, OnceItPrintsATableAndEnds) {
  const Place place;
  const Published published(place);
  const Finished top = run_top(place, {"--once"});
  EXPECT_EQ(top.exit_code, 0) << top.err;
  EXPECT_EQ(top.err, "");
  EXPECT_THAT(top.out, StartsWith("1 program: 2 GiB reserved, 8 MiB allocated"));
  EXPECT_THAT(top.out, AllOf(HasSubstr(std::to_string(getpid()) + " train.py"), HasSubstr(" 20.0 "),
                             Not(HasSubstr("\x1b"))));
}

TEST(WeirTop, WhereNoTerminalIsItPrintsOnce) {
  const Place place;
  const Published published(place);
  const Finished top = run_top(place, {}, {{"TERM", "xterm"}});
  EXPECT_EQ(top.exit_code, 0);
  EXPECT_EQ(top.out, run_top(place, {"--once"}).out);
}

TEST(WeirTop, ColumnsThatAreNoNumberAboveZeroAreAsUnset) {
  const Place place;
  const Published published(place);
  const std::string unset = run_top(place, {"--once"}).out;
  for (const char* columns : {"0", "", "many", "-3"}) {
    EXPECT_EQ(run_top(place, {"--once"}, {{"COLUMNS", columns}}).out, unset) << columns;
  }
  EXPECT_NE(run_top(place, {"--once"}, {{"COLUMNS", "40"}}).out, unset);
}

TEST(WeirTop, WithoutProgramsItSaysSo) {
  const Place place;
  const Finished top = run_top(place, {});
  EXPECT_EQ(top.exit_code, 0);
  EXPECT_EQ(top.out, "no program runs under Weir\n");
}

TEST(WeirTop, AStrangersNameIsShownAndNotObeyed) {
  const Place place;
  const Published published(place, "evil\x1b[2J\n12345 root");
  EXPECT_THAT(run_top(place, {"--once", "--wide"}).out, HasSubstr("evil\\x1b[2J\\x0a12345 root"));
}

TEST(WeirTop, DrawsInBlocksWhereTheLocaleHasThem) {
  const Place place;
  const Published published(place);
  EXPECT_THAT(run_top(place, {"--once"}, {{"LANG", "en_US.UTF-8"}}).out, HasSubstr("█"));
  EXPECT_THAT(run_top(place, {"--once"}, {{"LANG", "C"}}).out, Not(HasSubstr("█")));
  EXPECT_THAT(run_top(place, {"--once"}, {{"LANG", "en_US.UTF-8"}, {"LC_ALL", "C"}}).out,
              Not(HasSubstr("█")));
}

TEST(WeirTop, JsonGoesToAProgram) {
  const Place place;
  const Published published(place);
  const Finished top = run_top(place, {"--json", "-"});
  EXPECT_EQ(top.exit_code, 0) << top.err;
  const auto json = nlohmann::json::parse(top.out);
  EXPECT_EQ(json["programs"][0]["program"], "train.py");
  EXPECT_EQ(json["programs"][0]["batches_per_second"], 20.0);
}

TEST(WeirTop, RemovesWhatAKilledProgramLeft) {
  const Place place;
  Child child([&place](const std::function<void()>& ready) {
    const BlockFile block(place.folders(), "victim");
    ready();
  });
  ASSERT_TRUE(child.ready());
  child.end();
  EXPECT_EQ(place.files(), 1U);
  EXPECT_EQ(run_top(place, {"--once"}).out, "no program runs under Weir\n");
  EXPECT_EQ(place.files(), 0U);
}

TEST(WeirTop, BadInputIsOneLine) {
  const Place place;
  for (const auto& words : std::vector<std::vector<std::string>>{{"--every", "0"},
                                                                 {"--every", "soon"},
                                                                 {"--every", "2", "--once"},
                                                                 {"--json", ""},
                                                                 {"--", "program"}}) {
    const Finished top = run_top(place, words);
    EXPECT_EQ(top.exit_code, 2) << words.front();
    EXPECT_THAT(top.err, StartsWith("weir: "));
    EXPECT_EQ(top.out, "");
  }
  EXPECT_THAT(run_top(place, {"--once"}, {{"WEIR_PUBLISH", "maybe"}}).err,
              StartsWith("weir: WEIR_PUBLISH='maybe' is not allowed: "));
}

/// `weir top` on its own terminal.
class OnTerminal {
 public:
  explicit OnTerminal(const Place& place, const char* kind = "xterm") {
    const winsize size{.ws_row = 10, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
    int its = -1;
    if (openpty(&terminal_, &its, nullptr, nullptr, &size) != 0) ADD_FAILURE() << "no terminal";
    tcgetattr(terminal_, &before_);  // before it has the terminal, whose settings it changes
    process_ = fork();
    if (process_ != 0) {
      close(its);
      return;
    }
    close(terminal_);
    (void)login_tty(its);
    for (const int signal : {SIGINT, SIGTERM, SIGTSTP, SIGHUP, SIGWINCH}) {
      (void)std::signal(signal, SIG_DFL);
    }
    setenv("WEIR_PUBLISH", place.path().c_str(), 1);
    setenv("TERM", kind, 1);
    setenv("LC_ALL", "C", 1);
    execl(WEIR_TRAIN_PROGRAM, "weir", "top", "--every", "0.1", nullptr);
    _exit(127);
  }
  ~OnTerminal() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
    close(terminal_);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  /// Reads until `text` comes, after the text read before.
  void await(const std::string& text) {
    for (;;) {
      const std::size_t at = text_.find(text, seen_);
      if (at != std::string::npos) {
        seen_ = at + text.size();
        return;
      }
      ASSERT_TRUE(read_more()) << "no '" << text << "' in: " << text_;
    }
  }
  /// Its output until its end.
  [[nodiscard]] std::string read_all() {
    while (read_more()) continue;
    return text_;
  }
  void type(char letter) const { ASSERT_EQ(write(terminal_, &letter, 1), 1); }
  void send(int signal) const { ASSERT_EQ(kill(process_, signal), 0); }
  void resize(unsigned short columns) const {
    const winsize size{.ws_row = 10, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(ioctl(terminal_, TIOCSWINSZ, &size), 0);
  }
  [[nodiscard]] int wait(int flags = 0) {
    int status = 0;
    waitpid(process_, &status, flags);
    if (!WIFSTOPPED(status)) process_ = -1;
    return status;
  }
  /// Whether the terminal has its original settings.
  [[nodiscard]] bool is_restored() const {
    termios now{};
    tcgetattr(terminal_, &now);
    return now.c_lflag == before_.c_lflag && now.c_iflag == before_.c_iflag;
  }

 private:
  bool read_more() {
    constexpr int kDeadlineMs = 100'000;
    pollfd news{terminal_, POLLIN, 0};
    std::array<char, 4096> block{};
    if (poll(&news, 1, kDeadlineMs) <= 0) return false;
    const ssize_t count = read(terminal_, block.data(), block.size());
    if (count <= 0) return false;
    text_.append(block.data(), static_cast<std::size_t>(count));
    return true;
  }

  pid_t process_ = -1;
  int terminal_ = -1;
  termios before_{};
  std::string text_;
  std::size_t seen_ = 0;
};

TEST(WeirTopOnATerminal, QuitsOnQAndLeavesTheTerminalAsItWas) {
  const Place place;
  const Published published(place);
  OnTerminal top(place);
  top.await(kEnter);
  top.await("train.py");
  EXPECT_FALSE(top.is_restored()) << "it reads keys as they are typed";
  top.type('x');  // nothing
  top.await("train.py");
  top.type('q');
  top.await(kLeave);
  EXPECT_TRUE(WIFEXITED(top.wait()));
  EXPECT_TRUE(top.is_restored());
  EXPECT_THAT(top.read_all(), ::testing::EndsWith(kLeave));
}

TEST(WeirTopOnATerminal, QuitsOnCtrlC) {
  const Place place;
  OnTerminal top(place);
  top.await("no program runs under Weir");
  top.type(3);
  top.await(kLeave);
  const int status = top.wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(top.is_restored());
}

TEST(WeirTopOnATerminal, IsEndedByASignalAndLeavesTheTerminalAsItWas) {
  const Place place;
  for (const int signal : {SIGTERM, SIGHUP}) {
    OnTerminal top(place);
    top.await("no program runs under Weir");
    top.send(signal);
    top.await(kLeave);
    const int status = top.wait();
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_TRUE(top.is_restored());
  }
}

TEST(WeirTopOnATerminal, FollowsItsSize) {
  const Place place;
  const Published published(place);
  OnTerminal top(place);
  top.await("budget");
  top.resize(150);
  top.await("history");
  top.resize(24);
  top.await("pid program\x1b[K");
  top.type('q');
  top.await(kLeave);
}

TEST(WeirTopOnATerminal, ShowsWhoComesAndGoes) {
  const Place place;
  OnTerminal top(place);
  top.await("no program runs under Weir");
  {
    Child child([&place](const std::function<void()>& ready) {
      const BlockFile block(place.folders(), "visitor");
      ready();
    });
    top.await("visitor");
  }
  top.await("no program runs under Weir");
  top.type('q');
  top.await(kLeave);
}

TEST(WeirTopOnATerminal, StopsAsAJobWithTheShellsScreenAndComesBack) {
  const Place place;
  OnTerminal top(place);
  top.await("no program runs under Weir");
  top.send(SIGTSTP);
  top.await(kLeave);
  // Only a shell could continue it, so the kernel may let it run on; both are correct.
  top.send(SIGCONT);
  top.await(kEnter);
  top.await("no program runs under Weir");
  top.type('q');
  top.await(kLeave);
}

TEST(WeirTopOnATerminal, OnADumbOneItPrintsOnce) {
  const Place place;
  const Published published(place);
  OnTerminal top(place, "dumb");
  const std::string text = top.read_all();
  EXPECT_THAT(text, AllOf(HasSubstr("train.py"), Not(HasSubstr("\x1b"))));
  EXPECT_EQ(top.wait(), 0);
}

}  // namespace
}  // namespace weir::timeline::testing
