#include "trainer/ranks/lifeline.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/time_after.hpp"
#include "trainer/ranks/transport.hpp"

namespace weir {
namespace {

using Clock = Socket::Clock;

/// How long a rank that leaves waits for the others' goodbyes, so that its own arrives: a
/// connection closed with unread bytes loses what was sent last.
constexpr std::chrono::seconds kGoodbye{5};

}  // namespace

Lifeline::Lifeline(int rank, Links links, const LifelineOptions& options, Death death)
    : rank_(rank), options_(options), death_(std::move(death)), wake_(eventfd(0, EFD_CLOEXEC)) {
  if (wake_ < 0) throw Error("no eventfd for watching the other ranks");
  while (!links.empty()) {
    auto link = links.extract(links.begin());
    links_[link.key()].socket = std::move(link.mapped());
  }
  thread_ = std::thread([this] { serve(); });
}

Lifeline::~Lifeline() {
  ask(Wish::kStop, {});
  thread_.join();
  close(wake_);
}

void Lifeline::leave() noexcept {
  ask(Wish::kLeave, {});
  thread_.join();
  thread_ = std::thread([] {});  // for the destructor
}

void Lifeline::report(const std::string& reason) noexcept { ask(Wish::kReport, reason); }

void Lifeline::ask(Wish wish, const std::string& reason) noexcept {
  {
    const Lock lock(mutex_);
    wish_ = wish;
    reason_ = reason;
  }
  const std::uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);  // cannot fail: the counter is far from full
}

void Lifeline::serve() noexcept {
  Clock::time_point next = Clock::now();
  for (;;) {
    if (Clock::now() >= next) {
      if (!beat()) return;
      next = time_after_now(options_.beat);
    }
    if (!listen_until(next)) return;
  }
}

bool Lifeline::beat() {
  tell(Kind::kBeat, rank_, {});
  for (auto& [other, link] : links_) {
    if (link.left) continue;
    if (static_cast<std::int64_t>(link.silent++) * options_.beat >= options_.dead_after) {
      return lost(other, "has not answered for " + in_seconds(options_.dead_after));
    }
  }
  return true;
}

bool Lifeline::listen_until(Clock::time_point until) {
  std::vector<pollfd> wanted{{wake_, POLLIN, 0}};
  std::vector<int> others;
  for (const auto& [other, link] : links_) {
    if (!link.socket) continue;
    wanted.push_back({link.socket.get(), POLLIN, 0});
    others.push_back(other);
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  const auto timeout = std::max<std::int64_t>(left.count(), 0);
  if (poll(wanted.data(), wanted.size(), static_cast<int>(timeout)) <= 0) return true;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (wanted[i + 1].revents == 0) continue;
    if (!listen(links_.at(others[i]), others[i])) return false;
  }
  return wanted[0].revents == 0 || grant_wish();
}

bool Lifeline::grant_wish() {
  Wish wish = Wish::kNone;
  std::string reason;
  {
    const Lock lock(mutex_);
    wish = std::exchange(wish_, Wish::kNone);
    reason = reason_;
  }
  std::uint64_t count = 0;
  (void)!read(wake_, &count, sizeof count);
  if (wish == Wish::kReport) return lost(rank_, reason);
  if (wish == Wish::kLeave) say_goodbye();
  return wish == Wish::kNone;
}

bool Lifeline::listen(Link& link, int other) {
  for (;;) {
    auto* const place = reinterpret_cast<char*>(&link.record) + link.read;
    const ssize_t got = recv(link.socket.get(), place, sizeof(Record) - link.read, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) {
      link.socket = Socket();
      return link.left || lost(other, "ended before the others did");
    }
    link.silent = 0;
    link.read += static_cast<std::size_t>(got);
    if (link.read < sizeof(Record)) continue;
    link.read = 0;
    if (!hear(link.record, link)) return false;
  }
}

bool Lifeline::hear(const Record& record, Link& link) {
  if (record.kind == Kind::kGoodbye) link.left = true;
  if (record.kind != Kind::kDead) return true;
  return lost(record.rank, std::string(record.text.data()));
}

bool Lifeline::lost(int rank, const std::string& what) {
  tell(Kind::kDead, rank, what);
  death_(rank, what);
  return false;
}

void Lifeline::tell(Kind kind, int rank, const std::string& what) {
  Record record{.kind = kind, .rank = rank};
  std::copy_n(what.data(), std::min(what.size(), record.text.size() - 1), record.text.data());
  for (const auto& [other, link] : links_) {
    // Whoever cannot be told will miss our heartbeats, or is dead itself.
    if (link.socket) (void)!send(link.socket.get(), &record, sizeof record, MSG_NOSIGNAL);
  }
}

void Lifeline::say_goodbye() {
  tell(Kind::kGoodbye, rank_, {});
  const Clock::time_point deadline = Clock::now() + kGoodbye;
  for (auto& [other, link] : links_) {
    if (!link.socket) continue;
    shutdown(link.socket.get(), SHUT_WR);
    try {
      for (std::byte unread{};;) link.socket.receive_all({&unread, 1}, deadline);
    } catch (const Error&) {  // the other end is closed too: all was read
      link.socket = Socket();
    }
  }
}

}  // namespace weir
