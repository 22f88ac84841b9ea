// How a context serves requests and marks batches. One long file, because both pass through the
// same gate, fences and charges.

#include "tools/preload/context/arena.hpp"

#include <algorithm>
#include <array>
#include <stop_token>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "tools/preload/context/pace.hpp"

namespace weir::preload {
namespace {

/// Set during the calling thread's open(); stopped once a wait has run out.
constinit thread_local std::stop_source* admission_stop = nullptr;
/// The calling thread's open batch.
constinit thread_local OpenBatch own_batch{};

constexpr std::uint64_t kMostGiveUps = 2;

/// The current request, for the fences.
class Request final : public Fences::Request {
 public:
  Request(const Account& account, const DriverUpstream& upstream, const Pools& pools, Bytes bytes,
          StreamId stream) noexcept
      : account_(account),
        upstream_(upstream),
        pools_(pools),
        bytes_(bytes),
        stream_(stream),
        raises_(account.raises()) {}

  /// True for a request that does not fit beside allocated memory: no submitted work frees that. So
  /// a framework's probe for the largest block is answered quickly.
  [[nodiscard]] bool is_hopeless() const override { return account_.is_hopeless(bytes_); }
  [[nodiscard]] bool can_grow() const override {
    const Bytes block = pools_.block_size(bytes_, stream_).value_or(Bytes{UINT64_MAX / 2});
    const Statistics now = pools_.statistics();
    const bool fits = now.reserved.current + block <= now.budget &&
                      account_.used() + block <= account_.budget() && !upstream_.refused();
    return fits && !holds_much(now.awaiting.current + block, now.budget);
  }
  [[nodiscard]] bool has_new_room() const noexcept override { return account_.raises() != raises_; }
  /// Whether the budget was raised since the last call or construction.
  [[nodiscard]] bool take_new_room() noexcept {
    const std::uint64_t before = raises_;
    raises_ = account_.raises();
    return raises_ != before;
  }

 private:
  const Account& account_;
  const DriverUpstream& upstream_;
  const Pools& pools_;
  const Bytes bytes_;
  const StreamId stream_;
  std::uint64_t raises_;
};

/// Ends the thread's request and the questions asked for it.
struct EndRequest {
  EndRequest() = default;
  EndRequest(const EndRequest&) = delete;
  EndRequest& operator=(const EndRequest&) = delete;
  ~EndRequest() { Fences::end_request(); }
};

/// Records that a launch was held back from the slice's beginning until now.
void note_pace(const TimelineSlice& slice, Pace reason, int device) noexcept {
  const auto stall = reason == Pace::kWaitSoft ? TimelineStall::kRunAhead : TimelineStall::kBudget;
  slice.write({.device = static_cast<std::uint16_t>(device + 1),
               .kind = TimelineKind::kPace,
               .detail = static_cast<std::uint8_t>(stall)});
}

/// How many marked batches the run-ahead begins with. A program that marks its batches has little
/// memory to spare, as a rule.
constexpr std::uint64_t kFirstBatches = 2;

}  // namespace

/// Fences for admission. They end a batch's wait after the longest allowed time; admission alone
/// would ask again until the device is done.
class Arena::BoundedProgress final : public Progress {
 public:
  explicit BoundedProgress(Fences& fences) noexcept : fences_(fences) {}
  [[nodiscard]] Point record(StreamId stream) override { return fences_.record(stream); }
  [[nodiscard]] std::uint64_t passed(StreamId stream) override { return fences_.passed(stream); }
  [[nodiscard]] bool wait(Point point, std::stop_token stop) override {
    const bool reached = fences_.wait(point, std::move(stop));
    if (!reached && admission_stop != nullptr) admission_stop->request_stop();
    return reached;
  }
  void make_wait(StreamId waiter, Point point) override { fences_.make_wait(waiter, point); }

 private:
  Fences& fences_;
};

Arena::Arena(const Driver& driver, CUcontext context, Account& account, const Settings& settings)
    : context_(context),
      account_(account),
      settings_(settings),
      fences_(driver, context, settings.max_wait.value),
      upstream_(driver, context, account, fences_),
      pools_(upstream_, fences_, account, settings),
      bounded_(std::make_unique<BoundedProgress>(fences_)),
      admission_(pools_, {.progress = *bounded_, .ids = {fences_.everything()}},
                 settings.policy.policy.value, settings.policy.run_ahead.value,
                 settings.max_wait.value, kFirstBatches) {
  follow_budget();
  pools_.look_out(settings.policy.policy.value == Policy::kThrottled);
}

Arena::~Arena() = default;

void Arena::follow_budget() {
  pools_.set_limits(account_.budget(), running_out(settings_.policy.policy.value));
}

CUresult Arena::allocate(CUdeviceptr& pointer, std::size_t bytes, StreamId stream,
                         std::string& report) noexcept {
  Request request(account_, upstream_, pools_, {bytes}, stream);
  Fences::begin_request(&request);
  const EndRequest end;
  Attempt attempt;
  Stalls waits;
  try {
    const auto label = stream == fences_.sync() ? "cuMemAlloc" : "cuMemAllocAsync";
    // Its own pools can free nothing more, but others may have budget to give back.
    const auto has_more = [&] {
      return request.take_new_room() || Fences::insist() ||
             (attempt.upstream_refused && await_others(waits)) || request.take_new_room();
    };
    void* found = nullptr;
    do {
      attempt = {};
      try {
        found = pools_.try_allocate({bytes}, stream, label, attempt);
      } catch (const std::exception&) {
        if (!request.has_new_room()) throw;  // new room ended the wait: try again
      }
      waits += {.count = attempt.waits, .total = attempt.waited};
    } while (found == nullptr && has_more());
    if (found == nullptr) pools_.fail(attempt);
    account_.note_served({bytes});
    if (batches_.load(std::memory_order_relaxed) != 0) charge(found, attempt.block, waits);
    pointer = reinterpret_cast<CUdeviceptr>(found);
    return CUDA_SUCCESS;
  } catch (const DriverError& error) {
    return error.code();
  } catch (const std::exception& error) {
    tell(attempt, error, report);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

bool Arena::await_others(Stalls& waits) {
  if (!running_out(settings_.policy.policy.value).wait) return false;
  const auto next = account_.oldest_release();
  if (!next) return false;
  const auto start = Fences::Clock::now();
  {
    const Lock lock(mutex_);
    ++for_others_.count;
  }
  const bool reached = next->owner->fences().wait(next->point, {});
  if (reached) next->owner->pool().poll();
  const std::chrono::nanoseconds waited = Fences::Clock::now() - start;
  waits += {.count = 1, .total = waited};
  const Lock lock(mutex_);
  for_others_.total += waited;
  return reached;
}

void Arena::tell(const Attempt& attempt, const std::exception& why, std::string& report) noexcept {
  try {
    report = why.what();
    if (dynamic_cast<const OutOfMemory*>(&why) != nullptr) return;
    // A handover could not be waited for, and the pool has not counted the failure yet.
    pools_.fail(attempt);
  } catch (const OutOfMemory& pool) {
    report = std::string(pool.what()) + "\n    " + report;
  } catch (const std::exception&) {
    report = "out of memory, also on the host";
  }
}

std::optional<CUresult> Arena::free(CUdeviceptr pointer, StreamId stream) noexcept {
  void* const address = reinterpret_cast<void*>(pointer);
  try {
    // Before the pool has the memory back: another thread may get the address afterwards.
    const auto charge = take_charge(address);
    const auto freed = pools_.try_deallocate(address, stream);
    if (!freed) return std::nullopt;
    if (charge) {
      admission_.note_freed(charge->ticket, charge->bytes, *freed == Freed::kAwaiting);
    } else if (batches_.load(std::memory_order_relaxed) != 0) {
      admission_.note_given_back();
    }
    return CUDA_SUCCESS;
  } catch (const std::exception& error) {
    // Only host memory can be short here; then nothing was freed.
    log(LogLevel::kError, std::string("a free failed: ") + error.what());
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

// Until it ends, nothing may be asked of the device or given back to the driver.
void Arena::expect_capture() noexcept {
  attempt(LogLevel::kDebug, "a capture gets no more room", [&] {
    if (fences_.capturing()) return;
    // A captured step needs about as much as the same step before it, maybe in other sizes.
    const Bytes cached = pools_.spare();
    const Bytes room = minus_or_zero(account_.budget(), account_.used());
    if (cached > room) (void)pools_.trim();
  });
}

void Arena::note_launches(StreamId stream) noexcept {
  attempt(LogLevel::kDebug, "a launch was not paced", [&] {
    fences_.fence(stream);
    if (settings_.policy.policy.value == Policy::kThrottled && batches_.load() == 0) hold_back();
  });
}

void Arena::hold_back() {
  // Checked before asking the device, which costs most with many streams.
  if (InCallback::now()) return;
  const Pressure before = pools_.pressure();
  if (!holds_much(before.awaiting, before.budget)) return;
  Fences::begin_request();
  pools_.poll();
  const auto start = Fences::Clock::now();
  const TimelineSlice slice;
  std::optional<Pace> waited;
  for (;;) {
    const auto point = pools_.oldest_awaiting();
    if (!point) break;
    const auto behind = Fences::Clock::now() - fences_.recorded(*point);
    const Pace decided = pace(pools_.pressure(), behind, settings_.policy.policy.value,
                              settings_.policy.run_ahead.value);
    if (decided == Pace::kGo || fences_.is_parked(*point)) break;
    {
      const Lock lock(mutex_);
      if (give_ups_ >= kMostGiveUps || (given_up_ && *given_up_ == *point)) break;
    }
    if (!waited) waited = decided;
    const bool reached = fences_.wait(*point, {});
    if (!reached) {
      give_up(*point);
      break;
    }
    pools_.poll();
  }
  if (!waited) return;
  note_pace(slice, *waited, account_.device());
  const Lock lock(mutex_);
  ++paced_.count;
  paced_.total += Fences::Clock::now() - start;
}

// The awaited work may depend on this thread: let it go on, and do not wait for this point again. A
// program that does this twice would otherwise be held back at each step.
void Arena::give_up(Point point) {
  bool for_good = false;
  {
    const Lock lock(mutex_);
    given_up_ = point;
    for_good = ++give_ups_ >= kMostGiveUps;
  }
  if (for_good) pools_.look_out(false);
}

Arena::Shared Arena::share(CUdeviceptr base, Bytes& size) noexcept {
  void* const address = reinterpret_cast<void*>(base);
  const auto whole = upstream_.given(address);
  if (!whole) return Shared::kNotOurs;
  try {
    const auto held = pools_.find(address);
    // A handle to a part would also expose its neighbours.
    if (!held || held->size != *whole) return Shared::kPart;
    if (held->home != fences_.sync()) return Shared::kInOrder;
    if (!pools_.give_away(address)) return Shared::kPart;
    if (const auto charge = take_charge(address)) {
      admission_.note_freed(charge->ticket, charge->bytes, false);
    }
    upstream_.let_go(address, held->size);
    size = held->size;
    return Shared::kGiven;
  } catch (const std::exception&) {
    return Shared::kPart;
  }
}

void Arena::keep(CUdeviceptr pointer) noexcept {
  const Lock lock(mutex_);
  try {
    kept_.insert(pointer);
    keeps_any_.store(true);
  } catch (const std::exception&) {
    log(LogLevel::kError, "memory of a captured graph may be reused: host memory is full");
  }
}

bool Arena::is_kept(CUdeviceptr pointer) const noexcept {
  if (!keeps_any_.load()) return false;  // without a lock: every free asks
  const Lock lock(mutex_);
  return kept_.contains(pointer);
}

std::optional<TicketRef> Arena::ticket_here() const {
  if (own_batch.arena == this) return own_batch.ticket;
  // Most programs mark batches on one thread and allocate on others too: a backward pass has its
  // own thread. With several batches open the owner is unknown.
  const Lock lock(mutex_);
  return open_.size() == 1 ? std::optional(open_.front()) : std::nullopt;
}

void Arena::charge(void* pointer, Bytes bytes, const Stalls& waits) noexcept {
  const auto ticket = ticket_here();
  if (!ticket) return;
  try {
    const Lock lock(mutex_);
    charged_.insert_or_assign(pointer, Charge{*ticket, bytes});
    charged_blocks_.store(charged_.size(), std::memory_order_relaxed);
  } catch (const std::exception&) {
    return;  // charged to no batch
  }
  admission_.note_allocated(*ticket, bytes, waits);
}

std::optional<Arena::Charge> Arena::take_charge(void* pointer) noexcept {
  if (charged_blocks_.load(std::memory_order_relaxed) == 0) return std::nullopt;
  const Lock lock(mutex_);
  const auto found = charged_.find(pointer);
  if (found == charged_.end()) return std::nullopt;
  const Charge charge = found->second;
  charged_.erase(found);
  charged_blocks_.store(charged_.size(), std::memory_order_relaxed);
  return charge;
}

std::optional<OpenBatch> Arena::begin_batch(std::string_view kind) noexcept {
  if (InCallback::now() || fences_.capturing()) return std::nullopt;
  const NoCancel no_cancel;
  if (batches_.fetch_add(1) == 0) pools_.look_out(false);
  Fences::begin_request();
  std::stop_source stop;
  admission_stop = &stop;
  std::optional<OpenBatch> batch;
  attempt(LogLevel::kInfo, "a batch goes on without admission", [&] {
    const TicketRef ticket = admission_.open(kind, {.stop = stop.get_token()});
    ticket.ticket->touched.insert(kAllRoles.front());
    batch = OpenBatch{.arena = this,
                      .ticket = ticket,
                      .began = Fences::Clock::now(),
                      .marker = timeline_marker()};
    (void)TimelineScope::exchange({.batch = ticket.ticket->number});
    if (batch->marker != nullptr) batch->marker->push(ticket.ticket->number, 0);
    own_batch = *batch;
    const Lock lock(mutex_);
    open_.push_back(ticket);
  });
  admission_stop = nullptr;
  return batch;
}

void Arena::end_batch(const OpenBatch& batch) noexcept {
  const NoCancel no_cancel;
  own_batch = {};
  (void)TimelineScope::exchange({});
  if (batch.marker != nullptr) batch.marker->pop();
  {
    const Lock lock(mutex_);
    std::erase_if(open_, [&](const TicketRef& open) { return open.serial == batch.ticket.serial; });
  }
  attempt(LogLevel::kDebug, "a batch is not measured",
          [&] { fences_.measure(*batch.ticket.ticket, batch.began); });
  admission_.close(batch.ticket, true);
  fences_.fence(fences_.everything());
  if (settings_.policy.policy.value != Policy::kBarrier) return;
  attempt(LogLevel::kDebug, "a barrier was skipped", [&] {
    Fences::begin_request();
    (void)fences_.wait(fences_.record(fences_.everything()), {});
  });
}

void Arena::forget() noexcept {
  pools_.forget();
  fences_.forget();
  upstream_.forget();
}

Statistics Arena::statistics() const {
  Statistics now = pools_.statistics();
  const Lock lock(mutex_);
  now.waits += for_others_.count;
  now.waited += for_others_.total;
  return now;
}

Waits Arena::waits_for_others() const {
  const Lock lock(mutex_);
  return for_others_;
}

Waits Arena::paced() const {
  const Lock lock(mutex_);
  return paced_;
}

}  // namespace weir::preload
