#pragma once

/// @file
/// Tells every rank when one dies. Each rank sends rank 0 a heartbeat, and rank 0 one to each: a
/// killed process closes its connection, and a stopped one falls silent. Independent of the engine
/// that carries the data, whose calls would wait for ever.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "allocator/base/mutex.hpp"
#include "trainer/ranks/star.hpp"

namespace weir {

/// How often ranks say that they live, and how long one may be silent. Silence is counted in own
/// heartbeats: ranks that are all stopped and go on later stay alive.
struct LifelineOptions {
  std::chrono::nanoseconds beat = std::chrono::seconds(1);         ///< between two heartbeats
  std::chrono::nanoseconds dead_after = std::chrono::seconds(15);  ///< of silence
};

/// One rank's part. A thread of its own sends and listens.
class Lifeline {
 public:
  /// Is told of a rank's death, on the thread: its number and what happened to it. Nothing is
  /// watched any more afterwards.
  using Death = std::function<void(int rank, const std::string& what)>;

  /// `links` as `meet` returns them.
  Lifeline(int rank, Links links, const LifelineOptions& options, Death death);
  /// Without an earlier `leave`, the other ranks take this one for dead.
  ~Lifeline();
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  /// Says goodbye; the others no longer miss this rank. Call it when all have done their work.
  void leave() noexcept;
  /// Tells all ranks, this one too, that this rank is dead because of `reason`. Does not wait.
  /// Thread-safe.
  void report(const std::string& reason) noexcept;

 private:
  enum class Kind : std::uint8_t { kBeat, kGoodbye, kDead };
  struct Record {
    Kind kind = Kind::kBeat;
    std::int32_t rank = 0;         ///< of whom it tells
    std::array<char, 120> text{};  ///< what happened, ended by a zero
  };
  struct Link {
    Socket socket;
    std::uint64_t silent = 0;  ///< heartbeats of ours since the last of theirs
    bool left = false;         ///< said goodbye
    Record record{};           ///< that is being read
    std::size_t read = 0;
  };
  enum class Wish : std::uint8_t { kNone, kLeave, kReport, kStop };

  void serve() noexcept;
  /// The following return false once there is nothing to watch any more.
  [[nodiscard]] bool beat();
  [[nodiscard]] bool listen(Link& link, int other);
  [[nodiscard]] bool hear(const Record& record, Link& link);
  /// Sleeps until something can be read or a heartbeat is due, and handles it.
  [[nodiscard]] bool listen_until(Socket::Clock::time_point until);
  [[nodiscard]] bool grant_wish();
  void say_goodbye();
  /// Tells everybody, and the owner. Returns false.
  bool lost(int rank, const std::string& what);
  void tell(Kind kind, int rank, const std::string& what);
  void ask(Wish wish, const std::string& reason) noexcept;

  const int rank_;
  const LifelineOptions options_;
  const Death death_;
  std::map<int, Link> links_;  ///< the thread's alone
  int wake_ = -1;              ///< an eventfd
  Mutex mutex_{LockRank::kLeaf};
  Wish wish_ WEIR_GUARDED_BY(mutex_) = Wish::kNone;
  std::string reason_ WEIR_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace weir
