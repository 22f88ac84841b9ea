#include "trainer/ranks/socket.hpp"

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
#include <memory>
#include <thread>

#include "allocator/base/error.hpp"

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

}  // namespace weir
