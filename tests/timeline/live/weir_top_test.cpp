// `weir top` as a process: once, and on a terminal.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "live_support.hpp"
#include "support/child_process.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using weir::testing::ChildOptions;
using weir::testing::ChildProcess;
using weir::testing::Finished;
using weir::testing::Variables;
using weir::testing::Words;

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

/// `weir top` on its own terminal.
class OnTerminal {
 public:
  explicit OnTerminal(const Place& place, const char* kind = "xterm") {
    EXPECT_TRUE(grantpt(terminal_) == 0 && unlockpt(terminal_) == 0);
    resize(60);
    tcgetattr(terminal_, &before_);  // before it has the terminal, whose settings it changes
    top_.emplace(
        Words{"top", "--every", "0.1"},
        ChildOptions{
            .environment = {{"WEIR_PUBLISH", place.path()}, {"TERM", kind}, {"LC_ALL", "C"}},
            .terminal = terminal_});
  }
  ~OnTerminal() {
    top_.reset();
    close(terminal_);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  /// Reads until `text` comes, after the text read before.
  void await(const std::string& text) { top_->await_text(text); }
  void type(char letter) const { ASSERT_EQ(write(terminal_, &letter, 1), 1); }
  void send(int signal) const { top_->send(signal); }
  void resize(unsigned short columns) const {
    const winsize size{.ws_row = 10, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(ioctl(terminal_, TIOCSWINSZ, &size), 0);
  }
  [[nodiscard]] Finished wait() { return top_->wait(); }
  /// Whether the terminal has its original settings.
  [[nodiscard]] bool is_restored() const {
    termios now{};
    tcgetattr(terminal_, &now);
    return now.c_lflag == before_.c_lflag && now.c_iflag == before_.c_iflag;
  }

 private:
  const int terminal_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  termios before_{};
  std::optional<ChildProcess> top_;
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
  const Finished end = top.wait();
  EXPECT_EQ(end.signal, 0);
  EXPECT_TRUE(top.is_restored());
  EXPECT_THAT(end.out, ::testing::EndsWith(kLeave));
}

TEST(WeirTopOnATerminal, QuitsOnCtrlC) {
  const Place place;
  OnTerminal top(place);
  top.await("no program runs under Weir");
  top.type(3);
  top.await(kLeave);
  EXPECT_EQ(top.wait().exit_code, 0);
  EXPECT_TRUE(top.is_restored());
}

TEST(WeirTopOnATerminal, IsEndedByASignalAndLeavesTheTerminalAsItWas) {
  const Place place;
  for (const int signal : {SIGTERM, SIGHUP}) {
    OnTerminal top(place);
    top.await("no program runs under Weir");
    top.send(signal);
    top.await(kLeave);
    EXPECT_EQ(top.wait().signal, signal);
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
    Forked child([&place](const Telling& tell) {
      const BlockFile block(place.folders(), "visitor");
      tell.and_wait();
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
  const Finished end = top.wait();
  EXPECT_THAT(end.out, AllOf(HasSubstr("train.py"), Not(HasSubstr("\x1b"))));
  EXPECT_EQ(end.exit_code, 0);
}

}  // namespace
}  // namespace weir::timeline::testing
