#include "tools/weir/live/top_terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "tools/program/report_table.hpp"

namespace weir::cli {
namespace {

// Control sequences of ECMA-48 and xterm, which all current terminals support.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kEraseLine = "\x1b[K";
constexpr std::string_view kEraseBelow = "\x1b[J";

std::string variable(const Environment& environment, const char* name) {
  const char* const text = environment(name);
  return text == nullptr ? std::string() : std::string(text);
}

bool write_all(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t count = write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

bool asks_for_utf8(const Environment& environment) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string locale = variable(environment, name);
    if (locale.empty()) continue;
    std::ranges::transform(locale, locale.begin(), [](char letter) {
      return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    });
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

bool can_draw(const Environment& environment) {
  const std::string kind = variable(environment, "TERM");
  return isatty(STDOUT_FILENO) != 0 && !kind.empty() && kind != "dumb";
}

Screen screen_of(const Environment& environment) {
  constexpr std::size_t kLeast = 20;
  constexpr std::size_t kMost = 1000;
  Screen screen{.width = kMostColumns, .height = 0, .utf8 = asks_for_utf8(environment)};
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
    screen.width = size.ws_col;
    screen.height = size.ws_row;
  } else if (const auto columns = parse_whole(variable(environment, "COLUMNS"));
             columns && *columns != 0) {
    screen.width = static_cast<std::size_t>(std::min<std::uint64_t>(*columns, kMost));
  }
  screen.width = std::clamp(screen.width, kLeast, kMost);
  return screen;
}

TopTerminal::TopTerminal() : has_keys_(tcgetattr(STDIN_FILENO, &settings_) == 0) {
  sigemptyset(&taken_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) {
    sigaddset(&taken_, signal);
  }
  sigprocmask(SIG_BLOCK, &taken_, &before_);
  signals_ = signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) {
    const int error = errno;
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    throw Error("signalfd: " + std::generic_category().message(error));
  }
  enter();
}

TopTerminal::~TopTerminal() {
  leave();
  close(signals_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void TopTerminal::enter() {
  if (has_keys_) {
    termios settings = settings_;
    settings.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &settings);
  }
  (void)write_all(kEnter);
}

void TopTerminal::leave() noexcept {
  (void)write_all(kLeave);
  if (has_keys_) tcsetattr(STDIN_FILENO, TCSADRAIN, &settings_);
}

bool TopTerminal::draw(std::string_view text) {
  std::string drawn(kHome);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    // A newline after the last line would scroll the screen.
    if (at != 0) drawn += "\r\n";
    drawn += text.substr(at, end - at);
    drawn += kEraseLine;
    at = end + 1;
  }
  drawn += kEraseBelow;
  return write_all(drawn);
}

TopTerminal::Event TopTerminal::wait(std::chrono::milliseconds longest) {
  std::array<pollfd, 2> news{pollfd{signals_, POLLIN, 0},
                             pollfd{has_keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
  const int count = poll(news.data(), news.size(), static_cast<int>(longest.count()));
  if (count <= 0) return {Event::Kind::kTime};
  if (news[0].revents != 0) return take_signal();
  return take_key();
}

TopTerminal::Event TopTerminal::take_key() const {
  std::array<char, 64> keys{};
  const ssize_t count = read(STDIN_FILENO, keys.data(), keys.size());
  if (count <= 0) return {Event::Kind::kQuit};
  const std::string_view typed(keys.data(), static_cast<std::size_t>(count));
  return {typed.find_first_of("qQ") == std::string_view::npos ? Event::Kind::kRedraw
                                                              : Event::Kind::kQuit};
}

TopTerminal::Event TopTerminal::take_signal() {
  signalfd_siginfo info{};
  if (read(signals_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
    return {Event::Kind::kTime};
  }
  const int signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGINT) return {Event::Kind::kQuit};
  if (signal == SIGTSTP) stop();
  if (signal == SIGTSTP || signal == SIGWINCH) return {Event::Kind::kRedraw};
  return {Event::Kind::kSignal, signal};
}

void TopTerminal::stop() {
  leave();
  (void)raise(SIGTSTP);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  sigprocmask(SIG_BLOCK, &only, nullptr);
  enter();
}

}  // namespace weir::cli
