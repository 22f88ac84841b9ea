#include "trainer/ranks/star.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/time_after.hpp"

namespace weir {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Error(what + ": " +
              std::strerror(errno));  // NOLINT(concurrency-mt-unsafe): glibc's is safe
}

/// Waits until the socket is ready for `events`. Throws Error at the deadline.
void await(int descriptor, short events, Socket::Clock::time_point deadline, const char* what) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Socket::Clock::now());
    if (left.count() <= 0) throw Error(std::string(what) + ": nothing came in time");
    pollfd wanted{descriptor, events, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(std::min<long>(left.count(), 60'000)));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) fail(what);
  }
}

/// Small messages leave at once.
void prepare(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

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

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Socket::send_all(std::span<const std::byte> bytes, Clock::time_point deadline) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EINTR) {
      await(descriptor_, POLLOUT, deadline, "sending to another rank");
    } else {
      fail("sending to another rank");
    }
  }
}

void Socket::receive_all(std::span<std::byte> bytes, Clock::time_point deadline) const {
  while (!bytes.empty()) {
    const ssize_t got = recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0) {
      throw Error("receiving from another rank: it closed the connection");
    } else if (errno == EAGAIN || errno == EINTR) {
      await(descriptor_, POLLIN, deadline, "receiving from another rank");
    } else {
      fail("receiving from another rank");
    }
  }
}

Socket listen_on(std::uint16_t port, bool this_machine_alone) {
  Socket listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener) fail("listening for the other ranks");
  const int on = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(this_machine_alone ? INADDR_LOOPBACK : INADDR_ANY);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0) {
    fail("listening for the other ranks on port " + std::to_string(port));
  }
  fcntl(listener.get(), F_SETFL, O_NONBLOCK);
  return listener;
}

std::uint16_t port_of(const Socket& listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    fail("asking for a port");
  }
  return ntohs(address.sin_port);
}

Socket accept_one(const Socket& listener, Socket::Clock::time_point deadline) {
  for (;;) {
    await(listener.get(), POLLIN, deadline, "waiting for the other ranks to connect");
    Socket accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (accepted) {
      prepare(accepted.get());
      return accepted;
    }
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) fail("accepting another rank");
  }
}

Socket connect_to(const std::string& host, std::uint16_t port, Socket::Clock::time_point deadline) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int unknown = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (unknown != 0) throw Error("rank 0's machine '" + host + "': " + gai_strerror(unknown));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  for (;;) {
    Socket connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!connection) fail("connecting to rank 0");
    const timeval longest{.tv_sec = 5, .tv_usec = 0};  // of one try
    setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
    if (connect(connection.get(), found->ai_addr, found->ai_addrlen) == 0) {
      prepare(connection.get());
      return connection;
    }
    if (Socket::Clock::now() >= deadline) {
      fail("connecting to rank 0 at " + host + ":" + std::to_string(port));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) fail("asking for this machine's name");
  return name.data();
}

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
