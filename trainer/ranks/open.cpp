#include "trainer/ranks/open.hpp"

#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/time_after.hpp"
#include "trainer/ranks/nccl.hpp"
#include "trainer/ranks/star.hpp"
#include "trainer/ranks/transport.hpp"

namespace weir {
namespace {

void say_end(int rank, std::string_view why) {
  log(LogLevel::kError, "rank " + std::to_string(rank) + " ends: " + std::string(why));
}
/// Ends this process although other threads wait inside an engine: no destructor could end them.
[[noreturn]] void end_process(int rank, std::string_view why) {
  say_end(rank, why);
  std::_Exit(1);
}

/// Ends the process if it lives longer than `limit`: an engine's own start and end have no time
/// limit.
class TimeLimit {
 public:
  TimeLimit(int rank, std::chrono::nanoseconds limit, std::string why)
      : thread_([this, rank, limit, why = std::move(why)](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          (void)over_.wait_until(lock, stop, time_after_now(limit), [] { return false; });
          if (!stop.stop_requested()) end_process(rank, why);
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any over_;
  std::jthread thread_;
};

/// Everything that several ranks need.
class Ranks final : public Communicator {
 public:
  Ranks(const Launch& launch, DeviceId device, const RanksOptions& options)
      : rank_(launch.rank), size_(launch.size), start_within_(options.start_within) {
    const TimeLimit limit(rank_, start_within_, "the other ranks did not start in time");
    Links links =
        launch.launcher == Launcher::kTorchrun ? meet_by_tcp(launch) : meet_by_mpi(launch);
    lifeline_ = std::make_unique<Lifeline>(
        rank_, std::move(links), options.lifeline, [this](int rank, const std::string& what) {
          if (rank == rank_ && aborts_) std::_Exit(1);  // it has said why
          end_process(rank_, rank == rank_ ? what : "rank " + std::to_string(rank) + " " + what);
        });
    if (options.before_device) options.before_device(*this);
    if (device.kind == DeviceKind::kCuda) join_nccl(device.ordinal);
    use(options.patience);  // what was sent so far does not count
  }
  ~Ranks() override = default;

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return size_; }
  [[nodiscard]] std::string engine() const override { return nccl_ ? nccl_->engine() : engine_; }

  void broadcast(std::span<std::byte> bytes) override { exchange_->broadcast(bytes); }
  void gather_all(std::span<const std::byte> mine, std::span<std::byte> all) override {
    exchange_->gather_all(mine, all);
  }
  void barrier() override { exchange_->barrier(); }
  void all_reduce(Stream& stream, std::span<const std::span<float>> parts) override {
    if (nccl_) return nccl_->all_reduce(stream, parts);
    exchange_->all_reduce(parts);
  }
  void all_gather(Stream& stream, std::span<const float> mine, std::span<float> all) override {
    if (nccl_) return nccl_->all_gather(stream, mine, all);
    exchange_->all_gather(mine, all);
  }

  [[nodiscard]] Traffic traffic() const noexcept override {
    Traffic sum = exchange_->traffic();
    if (nccl_) {
      sum.calls += nccl_->traffic().calls;
      sum.bytes += nccl_->traffic().bytes;
    }
    return sum;
  }
  void finish() override {
    exchange_->barrier();
    if (nccl_) nccl_->finish();
    lifeline_->leave();
    const TimeLimit limit(rank_, start_within_, "MPI did not end in time");
    transport_->finish();
  }
  [[noreturn]] void abort(std::string_view reason) noexcept override {
    // Said before the others hear of it: a launcher ends all ranks as soon as one has ended.
    say_end(rank_, reason);
    aborts_ = true;
    if (lifeline_) {
      lifeline_->report(std::string(reason));
      std::this_thread::sleep_for(std::chrono::seconds(5));  // its thread ends the process
    }
    std::_Exit(1);
  }

 private:
  void use(const Patience& patience) {
    exchange_ = std::make_unique<Exchange>(*transport_, patience,
                                           [this](const std::string& reason) { abort(reason); });
  }
  /// Ranks may come late, but not later than the start's limit says.
  void start(std::unique_ptr<Transport> transport) {
    transport_ = std::move(transport);
    use({.warn_after = start_within_ / 2, .give_up_after = start_within_});
  }

  Links meet_by_mpi(const Launch& launch) {
    engine_ = launch.launcher == Launcher::kOpenMpi ? "Open MPI" : "MPICH";
    start(open_mpi(launch.launcher));
    if (transport_->rank() != rank_ || transport_->size() != size_) {
      throw UsageError(engine_ + " says that this is rank " + std::to_string(transport_->rank()) +
                       " of " + std::to_string(transport_->size()) + ", but its mpirun said rank " +
                       std::to_string(rank_) + " of " + std::to_string(size_) +
                       ": the mpirun is another MPI's");
    }
    // Rank 0 listens for other machines only if there are any.
    std::array<char, 256> name{};
    const std::string mine = host_name();
    std::copy_n(mine.data(), std::min(mine.size(), name.size() - 1), name.data());
    std::vector<char> names(name.size() * static_cast<std::size_t>(size_));
    exchange_->gather_all(std::as_bytes(std::span(name)), std::as_writable_bytes(std::span(names)));
    bool one_machine = true;
    for (std::size_t i = name.size(); i < names.size(); ++i) {
      one_machine = one_machine && names[i] == names[i % name.size()];
    }
    Socket listener;
    Invitation place;
    if (rank_ == 0) {
      listener = listen_on(0, one_machine);
      place.port = port_of(listener);
      if (getrandom(place.password.data(), place.password.size(), 0) < 0) {
        throw Error("no random bytes for the ranks' password");
      }
    }
    exchange_->broadcast(std::as_writable_bytes(std::span(&place, 1)));
    const MeetingPlace where{.host = one_machine ? "127.0.0.1" : std::string(names.data()),
                             .port = place.port,
                             .password = place.password};
    return std::move(meet(rank_, size_, where, listener, 1, start_within_)[0]);
  }

  Links meet_by_tcp(const Launch& launch) {
    engine_ = "TCP by rank 0";
    Socket listener;
    if (rank_ == 0 && size_ > 1) listener = listen_on(launch.port, false);
    const MeetingPlace where{.host = launch.address, .port = launch.port, .password = {}};
    std::vector<Links> sets = meet(rank_, size_, where, listener, 2, start_within_);
    start(open_star(rank_, size_, std::move(sets[1])));
    return std::move(sets[0]);
  }

  void join_nccl(int ordinal) {
    NcclId id{};
    if (rank_ == 0) id = make_nccl_id();
    exchange_->broadcast(std::as_writable_bytes(std::span(id)));
    nccl_ = open_nccl(id, rank_, size_, ordinal);
  }

  /// What rank 0 tells the others by MPI.
  struct Invitation {
    std::array<char, 16> password{};
    std::uint16_t port = 0;
  };

  const int rank_;
  const int size_;
  const std::chrono::nanoseconds start_within_;
  std::atomic<bool> aborts_{false};
  std::string engine_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<DeviceCollectives> nccl_;
  std::unique_ptr<Lifeline> lifeline_;  ///< last: its thread's callback uses the others
};

/// A process that nobody started as one of several.
class OneRank final : public Communicator {
 public:
  [[nodiscard]] int rank() const noexcept override { return 0; }
  [[nodiscard]] int size() const noexcept override { return 1; }
  [[nodiscard]] std::string engine() const override { return "one rank"; }
  void broadcast(std::span<std::byte>) override { ++calls_; }
  void gather_all(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::ranges::copy(mine, all.begin());
    ++calls_;
  }
  void barrier() override { ++calls_; }
  void all_reduce(Stream&, std::span<const std::span<float>>) override { ++calls_; }
  void all_gather(Stream& stream, std::span<const float> mine, std::span<float> all) override {
    stream.copy(all.data(), mine.data(), Bytes{mine.size_bytes()});
    ++calls_;
  }
  [[nodiscard]] Traffic traffic() const noexcept override { return {calls_.load(), 0}; }
  void finish() override {}
  [[noreturn]] void abort(std::string_view reason) noexcept override { end_process(0, reason); }

 private:
  std::atomic<std::uint64_t> calls_{0};
};

}  // namespace

std::unique_ptr<Communicator> open_communicator(const Launch& launch, DeviceId device,
                                                const RanksOptions& options) {
  if (launch.launcher == Launcher::kNone) {
    auto one = std::make_unique<OneRank>();
    if (options.before_device) options.before_device(*one);
    return one;
  }
  if (launch.launcher == Launcher::kTorchrun && device.kind == DeviceKind::kCpu &&
      launch.size > 1) {
    throw UsageError("several ranks on the cpu need mpirun: torchrun starts ranks for GPUs");
  }
  return std::make_unique<Ranks>(launch, device, options);
}

}  // namespace weir
