#include "timeline/cupti/standin_cupti_library.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weir::testing {

using timeline::cupti::kSuccess;
constexpr StandinCupti::Result kInvalidParameter = 1;
constexpr StandinCupti::Result kMaxLimitReached = 12;
constexpr StandinCupti::Result kQueueEmpty = 18;
constexpr StandinCupti::Kind kSerialKernel{3};

constinit std::atomic<bool> has_ended{false};

using Locked = std::lock_guard<std::recursive_mutex>;

StandinCuptiLibrary::~StandinCuptiLibrary() { has_ended = true; }

void StandinCuptiLibrary::reset() {
  const Locked locked(mutex_);
  answers_.clear();
  other_.clear();
  misuse_.clear();
  flushes_.clear();
  external_.clear();
  enabled_.clear();
  calls_.clear();
  called_.clear();
  timestamp_ = nullptr;
  generation_ = Generation::kNone;
  subscriber_ = 0;
  dropped_ = 0;
  buffer_ = {};
  places_.clear();
}

void StandinCuptiLibrary::answer(const std::string& function, Result result) {
  const Locked locked(mutex_);
  answers_[function] = result;
}

void StandinCuptiLibrary::hold(const std::string& name) {
  const Locked locked(mutex_);
  other_ = name;
}

bool StandinCuptiLibrary::emit(const std::vector<std::uint8_t>& record) {
  const Locked locked(mutex_);
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

void StandinCuptiLibrary::deliver() {
  const Locked locked(mutex_);
  if (buffer_.data != nullptr) complete(buffer_);
}

void StandinCuptiLibrary::complete(Buffer& buffer) {
  const Buffer full = std::exchange(buffer, {});
  if (completed2_ != nullptr) {
    completed2_(full.data, full.size, full.used, nullptr);
  } else {
    completed_(nullptr, 0, full.data, full.size, full.used);
  }
}

std::vector<std::string> StandinCuptiLibrary::misuse() {
  const Locked locked(mutex_);
  return misuse_;
}
std::vector<std::uint32_t> StandinCuptiLibrary::flushes() {
  const Locked locked(mutex_);
  return flushes_;
}
std::vector<std::uint64_t> StandinCuptiLibrary::external() {
  const Locked locked(mutex_);
  return external_;
}
std::set<StandinCupti::Kind> StandinCuptiLibrary::enabled() {
  const Locked locked(mutex_);
  return enabled_;
}
std::size_t StandinCuptiLibrary::enabled_calls() {
  const Locked locked(mutex_);
  return calls_.size();
}
std::uint64_t StandinCuptiLibrary::timestamp() {
  const Locked locked(mutex_);
  return timestamp_ != nullptr ? timestamp_() : 0;
}
bool StandinCuptiLibrary::held() {
  const Locked locked(mutex_);
  return subscriber_ != 0;
}
StandinCupti::Generation StandinCuptiLibrary::generation() {
  const Locked locked(mutex_);
  return generation_;
}
std::set<std::string> StandinCuptiLibrary::called() {
  const Locked locked(mutex_);
  return called_;
}

StandinCupti::Result StandinCuptiLibrary::enter(const char* function, Generation generation) {
  const Locked locked(mutex_);
  called_.insert(function);
  if (generation != Generation::kNone && subscriber_ != 0 && generation != generation_) {
    complain(std::string(function) + " is of the other generation");
  }
  const auto found = answers_.find(function);
  return found == answers_.end() ? kSuccess : found->second;
}

StandinCupti::Result StandinCuptiLibrary::subscribe(timeline::cupti::Subscriber* subscriber,
                                                    std::string* old, Generation with) {
  const Locked locked(mutex_);
  if (!other_.empty()) {
    if (old != nullptr) *old = other_;
    return timeline::cupti::kMultipleSubscribers;
  }
  if (subscriber_ != 0) complain("subscribed twice");
  generation_ = with;
  subscriber_ = ++last_subscriber_;
  std::memcpy(subscriber, &subscriber_, sizeof subscriber_);
  return kSuccess;
}

StandinCupti::Result StandinCuptiLibrary::check(timeline::cupti::Subscriber subscriber) {
  const Locked locked(mutex_);
  if (subscriber_ != 0 && reinterpret_cast<std::uintptr_t>(subscriber) == subscriber_) {
    return kSuccess;
  }
  return kInvalidParameter;
}

StandinCupti::Result StandinCuptiLibrary::unsubscribe(timeline::cupti::Subscriber subscriber) {
  const Locked locked(mutex_);
  if (check(subscriber) != kSuccess) complain("unsubscribed without a subscription");
  const bool works =
      answers_.empty();  // otherwise they may be enabled because nothing disabled them
  if (works && (!enabled_.empty() || !calls_.empty()))
    complain("unsubscribed with records enabled");
  subscriber_ = 0;
  if (generation_ == Generation::kNewer) external_.clear();  // else they are the process's
  return kSuccess;
}

StandinCupti::Result StandinCuptiLibrary::set_up(const char* function) {
  const Locked locked(mutex_);
  if (subscriber_ == 0) complain(std::string(function) + " before a subscription");
  if (!enabled_.empty()) complain(std::string(function) + " after records were enabled");
  return kSuccess;
}

StandinCupti::Result StandinCuptiLibrary::set_timestamp(timeline::cupti::Timestamp now) {
  const Locked locked(mutex_);
  timestamp_ = now;
  return kSuccess;
}

StandinCupti::Result StandinCuptiLibrary::register_callbacks(
    timeline::cupti::BufferRequested requested, timeline::cupti::BufferCompleted completed,
    timeline::cupti::BufferRequested2 requested2, timeline::cupti::BufferCompleted2 completed2) {
  const Locked locked(mutex_);
  requested_ = requested;
  completed_ = completed;
  requested2_ = requested2;
  completed2_ = completed2;
  return kSuccess;
}

StandinCupti::Result StandinCuptiLibrary::enable(Kind kind, bool on) {
  const Locked locked(mutex_);
  if (kind == kSerialKernel) complain("KERNEL serialises the program's kernels");
  if (on && requested_ == nullptr && requested2_ == nullptr) complain("enabled without buffers");
  if (on) {
    enabled_.insert(kind);
  } else if (enabled_.erase(kind) == 0) {
    complain("a kind was disabled that was not enabled");
  }
  return kSuccess;
}

StandinCupti::Result StandinCuptiLibrary::enable_call(Kind kind, std::uint32_t function, bool on) {
  const Locked locked(mutex_);
  if (function == 0) return kInvalidParameter;
  if (on) {
    calls_.insert({kind, function});
  } else if (calls_.erase({kind, function}) == 0) {
    complain("a call was disabled that was not enabled");
  }
  return kSuccess;
}

StandinCupti::Result StandinCuptiLibrary::next_record(const std::uint8_t* buffer, std::size_t valid,
                                                      std::uint8_t** record) {
  const Locked locked(mutex_);
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

StandinCupti::Result StandinCuptiLibrary::take_dropped(std::size_t* dropped) {
  const Locked locked(mutex_);
  *dropped = std::exchange(dropped_, 0);
  return kSuccess;
}

StandinCupti::Result StandinCuptiLibrary::push(std::uint64_t id) {
  const Locked locked(mutex_);
  external_.push_back(id);
  return kSuccess;
}

StandinCupti::Result StandinCuptiLibrary::pop(std::uint64_t* id) {
  const Locked locked(mutex_);
  if (external_.empty()) return kQueueEmpty;
  *id = external_.back();
  external_.pop_back();
  return kSuccess;
}

StandinCupti::Result StandinCuptiLibrary::flush(std::uint32_t flag) {
  const Locked locked(mutex_);
  if (requested_ == nullptr && requested2_ == nullptr) complain("flushed without buffers");
  flushes_.push_back(flag);
  deliver();
  return kSuccess;
}

StandinCuptiLibrary& standin_cupti_library() {
  static StandinCuptiLibrary standin;
  if (has_ended) {
    std::fputs("the stand-in CUPTI was called after its end\n", stderr);
    std::_Exit(4);
  }
  return standin;
}

}  // namespace weir::testing

weir::testing::StandinCupti* weir_standin_cupti() {
  return &weir::testing::standin_cupti_library();
}
