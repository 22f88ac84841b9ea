#include "tools/timeline/cupti/source.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <string_view>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "tools/timeline/cupti/abi.hpp"
#include "tools/timeline/cupti/buffers.hpp"
#include "tools/timeline/cupti/library.hpp"
#include "tools/timeline/cupti/parser.hpp"
#include "tools/timeline/cupti/profiler.hpp"

namespace weir::timeline {
namespace {

using cupti::Kind;
using cupti::Profiler;
using cupti::Result;

struct NamedKind {
  Kind kind;
  const char* name;
};
// Never contains KERNEL, which serialises kernels.
constexpr NamedKind kKernels{Kind::kConcurrentKernel, "CONCURRENT_KERNEL"};
constexpr auto kOtherKinds = std::to_array<NamedKind>({
    {Kind::kMemcpy, "MEMCPY"},
    {Kind::kMemcpyPeer, "MEMCPY2"},
    {Kind::kMemset, "MEMSET"},
    {Kind::kSynchronization, "SYNCHRONIZATION"},
    {Kind::kMemory, "MEMORY2"},
    {Kind::kMemoryPool, "MEMORY_POOL"},
    {Kind::kOverhead, "OVERHEAD"},
    {Kind::kExternalCorrelation, "EXTERNAL_CORRELATION"},
});

std::uint64_t read_clock(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}
std::uint64_t monotonic_now() noexcept { return read_clock(CLOCK_MONOTONIC); }

// Never destroyed, like everything below, because CUPTI may call from its own thread at any time.
constinit std::atomic<bool> a_source_gathers{false};
constinit std::atomic<Profiler*> external_profiler{nullptr};  // the profiler that is gathering
constinit std::atomic<Profiler*> last_profiler{nullptr};      // the last profiler that gathered
constinit thread_local std::uint32_t externals_pushed = 0;  // pushed by this thread and not popped

/// Passes each thread's batch and call site to CUPTI.
class ExternalMarker final : public TimelineMarker {
 public:
  void push(std::uint32_t batch, std::uint32_t site) noexcept override {
    push_external(batch, site);
  }
  void pop() noexcept override { pop_external(); }
};
ExternalMarker& external_marker() {
  static auto* const kMarker = new ExternalMarker;  // a thread may be inside it at any time
  return *kMarker;
}

/// An open libcupti and its generations. Never closed, like libcupti.
struct Opened {
  std::unique_ptr<cupti::Library> library;
  std::unique_ptr<Profiler> newer;  // null if this CUPTI has none
  std::unique_ptr<Profiler> older;  // likewise
  Profiler* used = nullptr;         // the subscribed one; null before subscribing
};

Opened* open(const Environment& environment, std::string& why) {
  static auto* const kKept = new std::vector<std::unique_ptr<Opened>>;
  auto opened = std::make_unique<Opened>();
  opened->library =
      cupti::open_library(cupti::cupti_places(environment, cupti::loaded_runtimes()), why);
  if (opened->library == nullptr) return nullptr;
  const cupti::Library& library = *opened->library;
  using Generation = Profiler::Generation;
  if (library.has_newer) opened->newer = std::make_unique<Profiler>(library, Generation::kNewer);
  if (library.has_older) opened->older = std::make_unique<Profiler>(library, Generation::kOlder);
  return kKept->emplace_back(std::move(opened)).get();
}

TimelineRecord note(std::uint32_t name) {
  const std::uint64_t now = monotonic_now();
  return {.begin = now, .end = now, .name = name, .kind = TimelineKind::kNote};
}

class CuptiSource final : public ActivitySource {
 public:
  explicit CuptiSource(Environment environment) : environment_(std::move(environment)) {}
  ~CuptiSource() override {
    stop();
    detach();
  }

  std::string start() override;
  void stop() noexcept override;
  void collect(Collect what, TimelineSink& sink,
               std::vector<TimelineRecord>& records) noexcept override;
  std::uint64_t lost() const noexcept override {
    return dropped_ + parser_.skipped().backwards + parser_.skipped().untimed;
  }

 private:
  [[nodiscard]] std::string attach();
  [[nodiscard]] bool subscribe(std::string& why);
  void drop_late_buffers();
  void set_up();
  [[nodiscard]] std::string enable_kinds();
  void enable_calls();
  template <std::size_t Count>
  bool enable_calls_of(Kind kind, const std::array<std::uint32_t, Count>& functions);
  void disable_kinds() noexcept;
  void detach() noexcept;

  void read_buffers(TimelineSink& sink, std::vector<TimelineRecord>& records);
  void read_buffer(const cupti::ActivityBuffers::Filled& buffer, TimelineSink& sink,
                   std::vector<TimelineRecord>& records);
  void tell(TimelineSink& sink, std::vector<TimelineRecord>& records);

  const Environment environment_;
  Opened* opened_ = nullptr;
  Profiler* profiler_ = nullptr;  // null: CUPTI is not held
  bool running_ = false;
  bool collected_all_ = false;  // complete since the last start
  bool own_clock_ = false;      // CUPTI takes its times from monotonic_now
  std::vector<Kind> enabled_;
  std::vector<std::pair<Kind, std::uint32_t>> enabled_calls_;
  std::vector<std::string> notes_;  // not yet written to a record
  std::vector<cupti::ActivityBuffers::Filled> filled_;
  std::uint64_t dropped_ = 0;
  std::uint64_t told_dropped_ = 0;
  cupti::Skipped told_;
  cupti::Parser parser_{[this](Kind kind, std::uint32_t function) -> const char* {
    return profiler_ != nullptr ? profiler_->function_name(kind, function) : nullptr;
  }};
};

std::string CuptiSource::start() {
  if (running_) return {};
  collected_all_ = false;
  std::string line = attach();
  if (line.empty()) line = enable_kinds();
  if (!line.empty()) {
    disable_kinds();
    detach();
    return "kernels and copies are not recorded: " + line;
  }
  running_ = true;
  last_profiler.store(profiler_, std::memory_order_release);
  external_profiler.store(profiler_, std::memory_order_release);
  detail::timeline_marker.store(&external_marker(), std::memory_order_release);
  return {};
}

/// Takes hold of CUPTI. Returns a line with the reason on failure.
std::string CuptiSource::attach() {
  if (profiler_ != nullptr) return {};
  std::string why;
  if (opened_ == nullptr) opened_ = open(environment_, why);
  if (opened_ == nullptr) return why;
  if (!cupti::activity_buffers().reserve()) return "there are no addresses for CUPTI's records";
  if (a_source_gathers.exchange(true)) return "another recording of this process holds CUPTI";
  if (!subscribe(why)) {
    a_source_gathers = false;
    return why;
  }
  drop_late_buffers();
  parser_.forget_origins();
  set_up();
  const Result result = profiler_->register_buffers();
  if (result != cupti::kSuccess) return "CUPTI takes no buffers: " + profiler_->describe(result);
  return {};
}

/// Uses the newer generation if available, else the older one. Never both: later recordings use the
/// generation of the first.
bool CuptiSource::subscribe(std::string& why) {
  for (Profiler* const profiler : {opened_->newer.get(), opened_->older.get()}) {
    if (profiler == nullptr || (opened_->used != nullptr && profiler != opened_->used)) continue;
    std::string holder;
    const Result result = profiler->subscribe(holder);
    if (result == cupti::kSuccess) {
      profiler_ = opened_->used = profiler;
      return true;
    }
    if (result == cupti::kMultipleSubscribers) {
      if (holder.empty()) holder = "another profiler (nsys, ncu, torch.profiler)";
      why = "CUPTI is in use by " + holder;
      return false;
    }
    why = "CUPTI says " + profiler->describe(result);
    if (result == cupti::kUnknownError) why += "; is there a driver, and a GPU?";
  }
  return false;
}

/// Drops buffers that arrived after the last recording released CUPTI. Only that subscriber could
/// read them.
void CuptiSource::drop_late_buffers() {
  cupti::activity_buffers().collect(filled_);
  for (const auto& buffer : filled_) {
    if (buffer.valid != 0) ++dropped_;  // at least one record
    cupti::activity_buffers().give_back(buffer);
  }
  filled_.clear();
}

/// Sets options that must precede the registration of buffers. All are optional.
void CuptiSource::set_up() {
  // Without this CUPTI zeroes the buffers itself, which only costs time.
  static_cast<void>(profiler_->set_zeroed_buffers());
  const auto without = [this](Result result, std::string_view what) {
    if (result == cupti::kSuccess) return;
    notes_.push_back("CUPTI " + std::string(what) + ": " + profiler_->describe(result));
  };
  without(profiler_->set_system_thread_ids(), "does not name threads");
  without(profiler_->set_allocation_source(), "does not say which library allocates");
  // Without this CUPTI uses CLOCK_REALTIME, according to its documentation.
  own_clock_ = profiler_->set_timestamp(monotonic_now) == cupti::kSuccess;
}

std::string CuptiSource::enable_kinds() {
  const Result result = profiler_->enable(kKernels.kind);
  if (result != cupti::kSuccess) return "CUPTI says " + profiler_->describe(result);
  enabled_.push_back(kKernels.kind);
  enable_calls();
  std::string left_out;
  for (const NamedKind& kind : kOtherKinds) {
    const Result answer = profiler_->enable(kind.kind);
    if (answer == cupti::kSuccess) {
      enabled_.push_back(kind.kind);
      continue;
    }
    left_out += (left_out.empty() ? "" : ", ") + std::string(kind.name) + ": " +
                profiler_->describe(answer);
  }
  if (!left_out.empty()) notes_.push_back("CUPTI gives no records of " + left_out);
  if (const std::uint64_t bytes = profiler_->device_bytes(); bytes != 0) {
    notes_.push_back("CUPTI keeps " + format_bytes(Bytes{bytes}) +
                     " of device memory or more in each context");
  }
  return {};
}

/// Enables the relevant functions, or every runtime call if CUPTI cannot select.
void CuptiSource::enable_calls() {
  const bool runtime = enable_calls_of(Kind::kRuntime, cupti::kRuntimeCalls);
  const bool driver = enable_calls_of(Kind::kDriver, cupti::kDriverCalls);
  if (runtime || driver) return;
  const Result result = profiler_->enable(Kind::kRuntime);
  if (result == cupti::kSuccess) {
    enabled_.push_back(Kind::kRuntime);
  } else {
    notes_.push_back("CUPTI gives no records of RUNTIME: " + profiler_->describe(result));
  }
}

template <std::size_t Count>
bool CuptiSource::enable_calls_of(Kind kind, const std::array<std::uint32_t, Count>& functions) {
  bool any = false;
  for (const std::uint32_t function : functions) {
    // An older CUPTI lacks the newest functions.
    if (profiler_->enable_call(kind, function) != cupti::kSuccess) continue;
    enabled_calls_.emplace_back(kind, function);
    any = true;
  }
  return any;
}

void CuptiSource::stop() noexcept {
  if (!running_) return;
  running_ = false;
  detail::timeline_marker.store(nullptr, std::memory_order_release);
  external_profiler.store(nullptr, std::memory_order_release);
  disable_kinds();
  if (collected_all_) detach();
}

void CuptiSource::disable_kinds() noexcept {
  if (profiler_ == nullptr) return;
  for (const Kind kind : enabled_) profiler_->disable(kind);
  for (const auto& [kind, function] : enabled_calls_) profiler_->disable_call(kind, function);
  enabled_.clear();
  enabled_calls_.clear();
}

/// Releases CUPTI. Does not call cuptiFinalize, because others may use CUPTI now or later.
void CuptiSource::detach() noexcept {
  if (profiler_ == nullptr) return;
  profiler_->unsubscribe();
  profiler_ = nullptr;
  a_source_gathers = false;
}

void CuptiSource::collect(Collect what, TimelineSink& sink,
                          std::vector<TimelineRecord>& records) noexcept {
  if (profiler_ == nullptr) return;
  profiler_->flush(what == Collect::kAll ? Profiler::Flush::kForced : Profiler::Flush::kComplete);
  const std::size_t first = records.size();
  try {
    read_buffers(sink, records);
    parser_.join(first, records);
    dropped_ += profiler_->take_dropped();
    tell(sink, records);
  } catch (const std::bad_alloc&) {
    ++dropped_;
  }
  for (const auto& buffer : filled_) cupti::activity_buffers().give_back(buffer);
  filled_.clear();
  collected_all_ = what == Collect::kAll;
  if (collected_all_ && !running_) detach();
}

void CuptiSource::read_buffers(TimelineSink& sink, std::vector<TimelineRecord>& records) {
  if (!own_clock_) {
    parser_.set_offset(static_cast<std::int64_t>(monotonic_now() - read_clock(CLOCK_REALTIME)));
  }
  filled_.reserve(cupti::ActivityBuffers::kCount);
  cupti::activity_buffers().collect(filled_);
  for (const auto& buffer : filled_) read_buffer(buffer, sink, records);
}

void CuptiSource::read_buffer(const cupti::ActivityBuffers::Filled& buffer, TimelineSink& sink,
                              std::vector<TimelineRecord>& records) {
  std::uint8_t* const end = buffer.data + buffer.valid;
  std::uint8_t* record = nullptr;
  if (!profiler_->next_record(buffer.data, buffer.valid, record)) return;
  while (record != nullptr) {
    std::uint8_t* next = record;
    // This record's size is the distance to the next record, for any CUPTI version.
    const bool more =
        profiler_->next_record(buffer.data, buffer.valid, next) && next > record && next < end;
    const auto size = static_cast<std::size_t>((more ? next : end) - record);
    parser_.read({record, size}, sink, records);
    record = more ? next : nullptr;
  }
}

/// Appends notes, and the number of lost records since the last call.
void CuptiSource::tell(TimelineSink& sink, std::vector<TimelineRecord>& records) {
  for (const std::string& text : notes_) {
    records.push_back(note(sink.name(text)));
  }
  notes_.clear();
  const auto say = [&](std::uint64_t now, std::uint64_t& told, std::string_view what) {
    if (now == told) return;
    const std::string text = std::to_string(now - told) + " records of CUPTI " + std::string(what);
    records.push_back(note(sink.name(text)));
    told = now;
  };
  const cupti::Skipped& skipped = parser_.skipped();
  say(dropped_, told_dropped_, "are lost: there was no room for them");
  say(skipped.backwards, told_.backwards, "are lost: they end before they begin");
  say(skipped.untimed, told_.untimed, "are lost: CUPTI had no room for their times");
  say(skipped.unknown, told_.unknown, "are skipped: their kind is not known");
}

}  // namespace

std::unique_ptr<ActivitySource> make_cupti_source(const Environment& environment) {
  return std::make_unique<CuptiSource>(environment);
}

void push_external(std::uint32_t batch, std::uint32_t site) noexcept {
  Profiler* const profiler = external_profiler.load(std::memory_order_acquire);
  if (profiler == nullptr) return;
  profiler->push_external(cupti::make_external(batch, site));
  ++externals_pushed;
}

void pop_external() noexcept {
  // Also if the recording has stopped meanwhile: CUPTI keeps a thread's ids, and would apply
  // leftover ids to all of the thread's work in the next recording.
  if (externals_pushed == 0) return;
  --externals_pushed;
  last_profiler.load(std::memory_order_acquire)->pop_external();
}

}  // namespace weir::timeline
