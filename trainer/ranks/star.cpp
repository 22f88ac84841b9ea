#include "trainer/ranks/star.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/time_after.hpp"

namespace weir {
namespace {

using Clock = Socket::Clock;

/// The first bytes on each connection.
struct Hello {
  std::array<char, 16> password{};
  std::int32_t rank = 0;
  std::int32_t set = 0;
};

/// Returns the ranks that have not all of their connections.
std::string missing(const std::vector<Links>& sets, int size) {
  std::string text;
  for (int rank = 1; rank < size; ++rank) {
    const auto has = [rank](const Links& links) { return links.contains(rank); };
    if (!std::ranges::all_of(sets, has)) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  }
  return text;
}

/// Accepts one connection into its place. A stranger's is dropped.
void accept_rank(std::vector<Links>& sets, int size, const MeetingPlace& place,
                 const Socket& listener, Clock::time_point deadline) {
  Socket socket = accept_one(listener, deadline);
  Hello hello;
  try {
    constexpr std::chrono::seconds kHello{5};
    socket.receive_all(std::as_writable_bytes(std::span(&hello, 1)), Clock::now() + kHello);
  } catch (const Error&) {
    return;
  }
  const bool ours = hello.password == place.password && hello.rank > 0 && hello.rank < size &&
                    hello.set >= 0 && std::cmp_less(hello.set, sets.size());
  if (ours) sets[static_cast<std::size_t>(hello.set)].emplace(hello.rank, std::move(socket));
}

class Star final : public Transport {
 public:
  Star(int rank, int size, Links links) : rank_(rank), size_(size), links_(std::move(links)) {}

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return size_; }
  void send(std::span<const std::byte> bytes, int to, int tag) override {
    Message& message = start(to).sends.emplace_back();
    message.header = {bytes.size(), static_cast<std::uint64_t>(tag)};
    message.out = bytes;
  }
  void receive(std::span<std::byte> bytes, int from, int tag) override {
    Message& message = start(from).receives.emplace_back();
    message.wanted = {bytes.size(), static_cast<std::uint64_t>(tag)};
    message.in = bytes;
  }
  bool progress() override {
    for (auto& [other, queues] : queues_) {
      const int socket = links_.at(other).get();
      while (!queues.sends.empty() && push(queues.sends.front(), socket)) queues.sends.pop_front();
      while (!queues.receives.empty() && pull(queues.receives.front(), socket)) {
        queues.receives.pop_front();
      }
    }
    return waits_for().empty();
  }
  [[nodiscard]] std::vector<int> waits_for() const override {
    std::vector<int> others;
    for (const auto& [other, queues] : queues_) {
      if (!queues.sends.empty() || !queues.receives.empty()) others.push_back(other);
    }
    return others;
  }
  void finish() override { links_.clear(); }

 private:
  struct Header {
    std::uint64_t bytes = 0;
    std::uint64_t tag = 0;
    bool operator==(const Header&) const = default;
  };
  struct Message {
    Header header{};
    Header wanted{};  ///< of a message to receive
    std::span<const std::byte> out{};
    std::span<std::byte> in{};
    std::size_t done = 0;  ///< bytes of header and contents
  };
  struct Queues {
    std::deque<Message> sends;
    std::deque<Message> receives;
  };

  Queues& start(int other) {
    if (!links_.contains(other))
      throw Error("this call needs mpirun: ranks here reach rank 0 only");
    return queues_[other];
  }
  /// Returns the bytes of a part of the message from `done` on.
  template <typename Byte>
  static std::span<Byte> rest(std::span<Byte> header, std::span<Byte> contents, std::size_t done) {
    return done < header.size() ? header.subspan(done) : contents.subspan(done - header.size());
  }
  static bool push(Message& message, int socket) {
    const auto header = std::as_bytes(std::span(&message.header, 1));
    for (;;) {
      const auto left = rest(header, message.out, message.done);
      if (left.empty() && message.done >= header.size()) return true;
      const ssize_t sent = ::send(socket, left.data(), left.size(), MSG_NOSIGNAL);
      if (!moved(sent)) return false;
      message.done += static_cast<std::size_t>(sent);
    }
  }
  static bool pull(Message& message, int socket) {
    const auto header = std::as_writable_bytes(std::span(&message.header, 1));
    for (;;) {
      if (message.done == header.size() && message.header != message.wanted) {
        throw Error("another rank made another call, or one of another size");
      }
      const auto left = rest(header, message.in, message.done);
      if (left.empty()) return true;
      const ssize_t got = ::recv(socket, left.data(), left.size(), 0);
      if (got == 0) throw Error("another rank closed its connection");
      if (!moved(got)) return false;
      message.done += static_cast<std::size_t>(got);
    }
  }
  /// Returns false if nothing could be moved now. Throws Error if the connection is broken.
  static bool moved(ssize_t count) {
    if (count >= 0) return true;
    if (errno == EAGAIN || errno == EINTR) return false;
    throw Error(std::string("a connection to another rank: ") +
                std::strerror(errno));  // NOLINT(concurrency-mt-unsafe): glibc's is safe
  }

  const int rank_;
  const int size_;
  Links links_;
  std::map<int, Queues> queues_;
};

}  // namespace

std::vector<Links> meet(int rank, int size, const MeetingPlace& place, const Socket& listener,
                        std::size_t sets, std::chrono::nanoseconds within) {
  const Clock::time_point deadline = time_after_now(within);
  std::vector<Links> links(sets);
  if (rank != 0) {
    for (std::size_t set = 0; set < sets; ++set) {
      Socket socket = connect_to(place.host, place.port, deadline);
      const Hello hello{place.password, rank, static_cast<std::int32_t>(set)};
      socket.send_all(std::as_bytes(std::span(&hello, 1)), deadline);
      links[set].emplace(0, std::move(socket));
    }
    return links;
  }
  while (!missing(links, size).empty()) {
    try {
      accept_rank(links, size, place, listener, deadline);
    } catch (const Error& error) {
      throw Error("no connection from rank " + missing(links, size) + ": " + error.what());
    }
  }
  return links;
}

std::unique_ptr<Transport> open_star(int rank, int size, Links links) {
  return std::make_unique<Star>(rank, size, std::move(links));
}

}  // namespace weir
