// The stand-in CUPTI: its state and what its functions do, then CUPTI's exports: those until 13.1,
// which later versions still have, and those since 13.3 for several subscribers at once, whose
// names end in _v2. CUPTI 13.2, between them, has a few of the latter, and reads no records by one.

#include "timeline/cupti/standin_cupti.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace weir::testing {
namespace cupti = timeline::cupti;
namespace {

using cupti::kSuccess;
using cupti::Result;
using cupti::Subscriber;
constexpr Result kInvalidParameter = 1;
constexpr Result kMaxLimitReached = 12;
constexpr Result kQueueEmpty = 18;
constexpr cupti::Kind kSerialKernel{3};

constinit std::atomic<bool> has_ended{false};

class StandinCuptiLibrary final : public StandinCupti {
 public:
  StandinCuptiLibrary() = default;
  /// The program ends: nobody may call any more.
  ~StandinCuptiLibrary() override { has_ended = true; }

  [[nodiscard]] auto lock() { return std::unique_lock<std::recursive_mutex>(mutex_); }

  void reset() override {
    const auto locked = lock();
    answers_.clear();
    other_.clear();
    seen_ = {};
    calls_.clear();
    timestamp_ = nullptr;
    subscriber_ = 0;
    dropped_ = 0;
    buffer_ = {};
    places_.clear();
  }
  void answer(const std::string& function, Result result) override {
    const auto locked = lock();
    answers_[function] = result;
  }
  void hold(const std::string& name) override {
    const auto locked = lock();
    other_ = name;
  }
  bool emit(const std::vector<std::uint8_t>& record) override {
    const auto locked = lock();
    if (buffer_.data != nullptr && buffer_.used + record.size() > buffer_.size) complete(buffer_);
    if (buffer_.data == nullptr) {
      std::size_t most = 0;
      if (requested2_ != nullptr) {
        requested2_(&buffer_.data, &buffer_.size, &most, nullptr);
      } else if (requested_ != nullptr) {
        requested_(&buffer_.data, &buffer_.size, &most);
      }
      if (most != 0) complain("a buffer takes a limited number of records");
      buffer_.used = 0;
      places_[buffer_.data].clear();
    }
    if (buffer_.data == nullptr) {
      ++dropped_;
      return false;
    }
    std::ranges::copy(record, buffer_.data + buffer_.used);  // memcpy takes no empty one
    places_[buffer_.data].push_back(buffer_.used);
    buffer_.used += record.size();
    return true;
  }
  void deliver() override {
    const auto locked = lock();
    if (buffer_.data != nullptr) complete(buffer_);
  }
  Seen seen() override {
    const auto locked = lock();
    Seen seen = seen_;
    seen.enabled_calls = calls_.size();
    seen.timestamp = timestamp_ != nullptr ? timestamp_() : 0;
    seen.held = subscriber_ != 0;
    return seen;
  }

  // For the functions of the library, which hold the lock.

  [[nodiscard]] bool is(Subscriber subscriber) const {
    return subscriber_ != 0 && reinterpret_cast<std::uintptr_t>(subscriber) == subscriber_;
  }
  /// Notes a call. Returns its result.
  Result enter(const std::string& function, Generation generation) {
    seen_.called.insert(function);
    if (generation != Generation::kNone && subscriber_ != 0 && generation != seen_.generation) {
      complain(function + " is of the other generation");
    }
    const auto found = answers_.find(function);
    return found == answers_.end() ? kSuccess : found->second;
  }
  Result subscribe(cupti::Subscriber* subscriber, std::string* old, Generation with) {
    if (!other_.empty()) {
      if (old != nullptr) *old = other_;
      return cupti::kMultipleSubscribers;
    }
    if (subscriber_ != 0) complain("subscribed twice");
    seen_.generation = with;
    subscriber_ = ++last_subscriber_;
    std::memcpy(subscriber, &subscriber_, sizeof subscriber_);
    return kSuccess;
  }
  Result unsubscribe(cupti::Subscriber subscriber) {
    if (!is(subscriber)) complain("unsubscribed without a subscription");
    const bool works =
        answers_.empty();  // otherwise they may be enabled because nothing disabled them
    if (works && (!seen_.enabled.empty() || !calls_.empty()))
      complain("unsubscribed with records enabled");
    subscriber_ = 0;
    if (seen_.generation == Generation::kNewer)
      seen_.external.clear();  // else they are the process's
    return kSuccess;
  }
  Result set_up(const char* function) {
    if (subscriber_ == 0) complain(std::string(function) + " before a subscription");
    if (!seen_.enabled.empty()) complain(std::string(function) + " after records were enabled");
    return kSuccess;
  }
  Result set_timestamp(cupti::Timestamp now) {
    timestamp_ = now;
    return kSuccess;
  }
  Result register_callbacks(cupti::BufferRequested requested, cupti::BufferCompleted completed,
                            cupti::BufferRequested2 requested2,
                            cupti::BufferCompleted2 completed2) {
    requested_ = requested;
    completed_ = completed;
    requested2_ = requested2;
    completed2_ = completed2;
    return kSuccess;
  }
  Result enable(Kind kind, bool on) {
    if (kind == kSerialKernel) complain("KERNEL serialises the program's kernels");
    if (on && requested_ == nullptr && requested2_ == nullptr) complain("enabled without buffers");
    if (on) {
      seen_.enabled.insert(kind);
    } else if (seen_.enabled.erase(kind) == 0) {
      complain("a kind was disabled that was not enabled");
    }
    return kSuccess;
  }
  Result enable_call(Kind kind, std::uint32_t function, bool on) {
    if (function == 0) return kInvalidParameter;
    if (on) {
      calls_.insert({kind, function});
    } else if (calls_.erase({kind, function}) == 0) {
      complain("a call was disabled that was not enabled");
    }
    return kSuccess;
  }
  Result next_record(const std::uint8_t* buffer, std::size_t valid, std::uint8_t** record) {
    const auto found = places_.find(buffer);
    if (found == places_.end()) return kMaxLimitReached;
    const std::vector<std::size_t>& places = found->second;
    const auto next = *record == nullptr ? places.begin()
                                         : std::ranges::upper_bound(
                                               places, static_cast<std::size_t>(*record - buffer));
    if (next == places.end() || *next >= valid) return kMaxLimitReached;
    *record = const_cast<std::uint8_t*>(buffer) + *next;
    return kSuccess;
  }
  Result take_dropped(std::size_t* dropped) {
    *dropped = std::exchange(dropped_, 0);
    return kSuccess;
  }
  Result push(std::uint64_t id) {
    seen_.external.push_back(id);
    return kSuccess;
  }
  Result pop(std::uint64_t* id) {
    if (seen_.external.empty()) return kQueueEmpty;
    *id = seen_.external.back();
    seen_.external.pop_back();
    return kSuccess;
  }
  Result flush(std::uint32_t flag) {
    if (requested_ == nullptr && requested2_ == nullptr) complain("flushed without buffers");
    seen_.flushes.push_back(flag);
    deliver();
    return kSuccess;
  }

 private:
  struct Buffer {
    std::uint8_t* data = nullptr;
    std::size_t size = 0;
    std::size_t used = 0;
  };
  void complete(Buffer& buffer) {
    const Buffer full = std::exchange(buffer, {});
    if (completed2_ != nullptr) {
      completed2_(full.data, full.size, full.used, nullptr);
    } else {
      completed_(nullptr, 0, full.data, full.size, full.used);
    }
  }
  void complain(std::string what) { seen_.misuse.push_back(std::move(what)); }

  std::recursive_mutex mutex_;
  Seen seen_;
  std::map<std::string, Result> answers_;
  std::string other_;
  std::set<std::pair<Kind, std::uint32_t>> calls_;
  cupti::Timestamp timestamp_ = nullptr;
  cupti::BufferRequested requested_ = nullptr;
  cupti::BufferCompleted completed_ = nullptr;
  cupti::BufferRequested2 requested2_ = nullptr;
  cupti::BufferCompleted2 completed2_ = nullptr;
  std::uintptr_t subscriber_ = 0;
  std::uintptr_t last_subscriber_ = 0;
  std::size_t dropped_ = 0;
  Buffer buffer_;
  std::map<const std::uint8_t*, std::vector<std::size_t>> places_;  // of the records in a buffer
};

/// The library's instance. Ends the program if that has ended before.
StandinCuptiLibrary& standin() {
  static StandinCuptiLibrary library;
  if (has_ended) {
    std::fputs("the stand-in CUPTI was called after its end\n", stderr);
    std::_Exit(4);
  }
  return library;
}

constexpr auto kOlder = StandinCupti::Generation::kOlder;
constexpr auto kNewer = StandinCupti::Generation::kNewer;
constexpr auto kBoth = StandinCupti::Generation::kNone;

/// The call is noted by its kind of records, too.
Result enable(const char* function, cupti::Kind kind, StandinCupti::Generation generation) {
  const auto number = std::to_string(static_cast<std::uint32_t>(kind));
  const Result answer = standin().enter(function + (":" + number), generation);
  return answer != kSuccess ? answer : standin().enable(kind, true);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming, bugprone-macro-parentheses): CUPTI's names
// Notes the call, and returns the result that the test wants.
#define ENTER(function, generation)     \
  const auto locked = standin().lock(); \
  if (const auto answer = standin().enter(function, generation); answer != 0) return answer;
// Define a function of a generation: its name, what it does, and its parameters.
#define OLDER(name, work, ...) \
  Result name(__VA_ARGS__) {   \
    ENTER(#name, kOlder)       \
    work                       \
  }
// It names its subscriber.
#define NEWER(name, work, ...)                               \
  Result name##_v2(Subscriber subscriber, __VA_ARGS__) {     \
    ENTER(#name "_v2", kNewer)                               \
    if (!standin().is(subscriber)) return kInvalidParameter; \
    work                                                     \
  }
#ifdef WEIR_STANDIN_NEWER_CUPTI
#define BOTH(name, work, ...) OLDER(name, work, __VA_ARGS__) NEWER(name, work, __VA_ARGS__)
#else
#define BOTH(name, work, ...) OLDER(name, work, __VA_ARGS__)
#endif

extern "C" {

Result cuptiGetResultString(Result result, const char** text) {
  ENTER("cuptiGetResultString", kBoth)
  *text = result == cupti::kUnknownError ? "CUPTI_ERROR_UNKNOWN" : "CUPTI_ERROR";
  return 0;
}
Result cuptiGetCallbackName(std::uint32_t domain, std::uint32_t function, const char** name) {
  ENTER("cuptiGetCallbackName", kBoth)
  const bool runtime = domain == cupti::kDomainRuntime && function == 211;
  const bool driver = domain == cupti::kDomainDriver && function == 307;
  *name = runtime ? "cudaLaunchKernel_v7000" : driver ? "cuLaunchKernel" : nullptr;
  return *name == nullptr ? 1 : 0;
}
Result cuptiActivityFlushAll(std::uint32_t flag) {
  ENTER("cuptiActivityFlushAll", kBoth)
  return standin().flush(flag);
}
Result cuptiUnsubscribe(Subscriber subscriber) {
  ENTER("cuptiUnsubscribe", kBoth)
  return standin().unsubscribe(subscriber);
}
Result cuptiFinalize() {
  ENTER("cuptiFinalize", kBoth)
  return 0;
}
Result cuptiSubscribe(Subscriber* subscriber, cupti::Callback /*callback*/, void* /*user*/) {
  ENTER("cuptiSubscribe", kOlder)
  return standin().subscribe(subscriber, nullptr, kOlder);
}
#ifdef WEIR_STANDIN_NEWER_CUPTI
Result cuptiSubscribe_v2(Subscriber* subscriber, cupti::Callback /*callback*/, void* /*user*/,
                         cupti::SubscriberParams* params) {
  // Without the last field the caller wants to be the only one, and the older functions.
  const bool multiple = params->size >= sizeof *params && params->allow_multiple != 0;
  ENTER(multiple ? "cuptiSubscribe_v2(multiple)" : "cuptiSubscribe_v2", kBoth)
  std::string old;
  const Result result = standin().subscribe(subscriber, &old, multiple ? kNewer : kOlder);
  old.resize(std::min(old.size(), params->old_subscriber_size - 1));
  if (params->old_subscriber != nullptr) {
    std::memcpy(params->old_subscriber, old.c_str(), old.size() + 1);
  }
  return result;
}
NEWER(cuptiActivitySetAttribute, standin().set_up("cuptiActivitySetAttribute_v2");
      if (attribute != cupti::Attribute::kTimestampCallback) return 0;
      cupti::Timestamp now = nullptr; if (*size != sizeof now) return 1;
      std::memcpy(&now, value, sizeof now); return standin().set_timestamp(now);
      , cupti::Attribute attribute, std::size_t* size, void* value)
NEWER(cuptiActivityRegisterCallbacks, standin().set_up("cuptiActivityRegisterCallbacks_v2");
      return standin().register_callbacks(nullptr, nullptr, requested, completed);
      , cupti::BufferRequested2 requested, cupti::BufferCompleted2 completed)
NEWER(cuptiActivityDisable, return standin().enable(kind, false);
      , cupti::Kind kind, void* /*config*/)
#endif
#if defined(WEIR_STANDIN_NEWER_CUPTI) || defined(WEIR_STANDIN_CUPTI_BETWEEN)
NEWER(cuptiActivityEnable, return enable("cuptiActivityEnable_v2", kind, kNewer);
      , cupti::Kind kind, void* /*config*/)
#endif
OLDER(cuptiActivitySetAttribute, return standin().set_up("cuptiActivitySetAttribute");
      , cupti::Attribute /*attribute*/, std::size_t* /*size*/, void* /*value*/)
OLDER(cuptiSetThreadIdType, return standin().set_up("cuptiSetThreadIdType");
      , std::uint32_t /*type*/)
OLDER(cuptiActivityEnableAllocationSource,
      return standin().set_up("cuptiActivityEnableAllocationSource");
      , std::uint8_t /*on*/)
OLDER(cuptiActivityRegisterTimestampCallback,
      standin().set_up("cuptiActivityRegisterTimestampCallback");
      return standin().set_timestamp(now);, cupti::Timestamp now)
OLDER(cuptiActivityRegisterCallbacks, standin().set_up("cuptiActivityRegisterCallbacks");
      return standin().register_callbacks(requested, completed, nullptr, nullptr);
      , cupti::BufferRequested requested, cupti::BufferCompleted completed)
OLDER(cuptiActivityEnable, return enable("cuptiActivityEnable", kind, kOlder);, cupti::Kind kind)
OLDER(cuptiActivityDisable, return standin().enable(kind, false);, cupti::Kind kind)
BOTH(cuptiActivityGetAttribute,
     const std::size_t number = attribute == cupti::Attribute::kDeviceBufferSize ? 3200000 : 3;
     std::memcpy(value, &number, std::min(*size, sizeof number)); return 0;
     , cupti::Attribute attribute, std::size_t* size, void* value)
BOTH(cuptiActivityEnableDriverApi,
     return standin().enable_call(cupti::Kind::kDriver, function, on != 0);
     , std::uint32_t function, std::uint8_t on)
BOTH(cuptiActivityEnableRuntimeApi,
     return standin().enable_call(cupti::Kind::kRuntime, function, on != 0);
     , std::uint32_t function, std::uint8_t on)
BOTH(cuptiActivityGetNextRecord, return standin().next_record(buffer, valid, record);
     , std::uint8_t* buffer, std::size_t valid, std::uint8_t** record)
BOTH(cuptiActivityGetNumDroppedRecords, return standin().take_dropped(dropped);
     , cupti::Context /*context*/, std::uint32_t /*stream*/, std::size_t* dropped)
BOTH(cuptiActivityPushExternalCorrelationId, return standin().push(id);
     , std::uint32_t /*kind*/, std::uint64_t id)
BOTH(cuptiActivityPopExternalCorrelationId, return standin().pop(id);
     , std::uint32_t /*kind*/, std::uint64_t* id)

}  // extern "C"
// NOLINTEND(readability-identifier-naming, bugprone-macro-parentheses)
}  // namespace weir::testing

weir::testing::StandinCupti* weir_standin_cupti() { return &weir::testing::standin(); }
