#include "tools/timeline/cupti/profiler.hpp"

#include <array>
#include <atomic>

namespace weir::timeline::cupti {
namespace {

constexpr Result kNotThere = -1;  // this CUPTI lacks the function
constexpr const char* kName = "Weir";

// A global, because CUPTI passes no user pointer to its buffer callbacks.
constinit std::atomic<const BufferCalls*> buffer_calls{nullptr};

void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *most = 0;  // no limit: as many records as fit
  *buffer = nullptr;
  *size = 0;
  if (const auto* const calls = buffer_calls.load(std::memory_order_acquire); calls != nullptr) {
    calls->requested(buffer, size);
  }
}
void completed(std::uint8_t* buffer, std::size_t valid) {
  if (const auto* const calls = buffer_calls.load(std::memory_order_acquire); calls != nullptr) {
    calls->completed(buffer, valid);
  }
}
void requested_older(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  requested(buffer, size, most);
}
void completed_older(Context /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer,
                     std::size_t /*size*/, std::size_t valid) {
  completed(buffer, valid);
}
void requested_newer(std::uint8_t** buffer, std::size_t* size, std::size_t* most, void* /*info*/) {
  requested(buffer, size, most);
}
void completed_newer(std::uint8_t* buffer, std::size_t /*size*/, std::size_t valid,
                     void* /*info*/) {
  completed(buffer, valid);
}

// Never called, because no callback is enabled. A subscriber is needed to hold CUPTI.
void ignore(void* /*user*/, std::uint32_t /*domain*/, std::uint32_t /*function*/,
            const void* /*data*/) {}

Result subscribe_with(const CommonCalls& calls, std::size_t size, Subscriber& subscriber,
                      std::string& holder) {
  std::array<char, 128> old{};
  SubscriberParams params{};
  params.size = size;
  params.name = kName;
  params.old_subscriber = old.data();
  params.old_subscriber_size = old.size() - 1;
  params.allow_multiple = 1;
  const Result result = calls.subscribe2(&subscriber, ignore, nullptr, &params);
  holder = old.data();
  return result;
}

class OlderProfiler final : public Profiler {
 public:
  using Profiler::Profiler;

  Result subscribe(std::string& holder) override {
    if (library_.common.subscribe2 != nullptr) {
      return subscribe_with(library_.common, kOlderSubscriberParams, subscriber_, holder);
    }
    return calls().subscribe(&subscriber_, ignore, nullptr);
  }
  Result set_zeroed_buffers() override {
    if (calls().set_attribute == nullptr) return kNotThere;
    std::uint8_t on = 1;
    std::size_t size = sizeof on;
    return calls().set_attribute(Attribute::kZeroedBuffer, &size, &on);
  }
  Result set_system_thread_ids() override {
    if (calls().set_thread_id_type == nullptr) return kNotThere;
    return calls().set_thread_id_type(kSystemThreadIds);
  }
  Result set_allocation_source() override {
    if (calls().enable_allocation_source == nullptr) return kNotThere;
    return calls().enable_allocation_source(1);
  }
  Result set_timestamp(Timestamp now) override {
    if (calls().register_timestamp == nullptr) return kNotThere;
    return calls().register_timestamp(now);
  }
  Result register_buffers(const BufferCalls& buffers) override {
    buffer_calls.store(&buffers, std::memory_order_release);
    return calls().register_callbacks(requested_older, completed_older);
  }
  Result enable(Kind kind) override { return calls().enable(kind); }
  Result enable_call(Kind kind, std::uint32_t function) override {
    return switch_call(kind, function, 1);
  }
  bool next_record(std::uint8_t* buffer, std::size_t valid, std::uint8_t*& record) override {
    return calls().next_record(buffer, valid, &record) == kSuccess;
  }
  std::uint64_t take_dropped() override {
    std::size_t dropped = 0;
    if (calls().dropped == nullptr) return 0;
    return calls().dropped(nullptr, 0, &dropped) == kSuccess ? dropped : 0;
  }
  std::uint64_t device_bytes() override {
    return read(Attribute::kDeviceBufferSize) * read(Attribute::kDeviceBufferPreallocate);
  }
  void push_external(std::uint64_t id) override {
    if (calls().push_external != nullptr) calls().push_external(kExternalCustom0, id);
  }
  void pop_external() override {
    std::uint64_t last = 0;
    if (calls().pop_external != nullptr) calls().pop_external(kExternalCustom0, &last);
  }
  void disable(Kind kind) override { calls().disable(kind); }
  void disable_call(Kind kind, std::uint32_t function) override { switch_call(kind, function, 0); }
  void unsubscribe() override { library_.common.unsubscribe(subscriber_); }

 private:
  [[nodiscard]] const OlderCalls& calls() const { return library_.older; }
  Result switch_call(Kind kind, std::uint32_t function, std::uint8_t on) const {
    const auto call =
        kind == Kind::kDriver ? calls().enable_driver_call : calls().enable_runtime_call;
    return call == nullptr ? kNotThere : call(function, on);
  }
  [[nodiscard]] std::uint64_t read(Attribute attribute) const {
    std::size_t value = 0;
    std::size_t size = sizeof value;
    if (calls().get_attribute == nullptr) return 0;
    return calls().get_attribute(attribute, &size, &value) == kSuccess ? value : 0;
  }

  Subscriber subscriber_ = nullptr;
};

class NewerProfiler final : public Profiler {
 public:
  using Profiler::Profiler;

  Result subscribe(std::string& holder) override {
    Subscriber subscriber = nullptr;
    const Result result =
        subscribe_with(library_.common, sizeof(SubscriberParams), subscriber, holder);
    subscriber_.store(subscriber, std::memory_order_release);
    return result;
  }
  Result set_zeroed_buffers() override {
    std::uint8_t on = 1;
    return set(Attribute::kZeroedBuffer, on);
  }
  Result set_system_thread_ids() override {
    std::uint32_t type = kSystemThreadIds;
    return set(Attribute::kThreadIdType, type);
  }
  Result set_allocation_source() override {
    std::uint8_t on = 1;
    return set(Attribute::kAllocationSource, on);
  }
  Result set_timestamp(Timestamp now) override { return set(Attribute::kTimestampCallback, now); }
  Result register_buffers(const BufferCalls& buffers) override {
    buffer_calls.store(&buffers, std::memory_order_release);
    return calls().register_callbacks(subscriber(), requested_newer, completed_newer);
  }
  Result enable(Kind kind) override { return calls().enable(subscriber(), kind, nullptr); }
  Result enable_call(Kind kind, std::uint32_t function) override {
    return switch_call(kind, function, 1);
  }
  bool next_record(std::uint8_t* buffer, std::size_t valid, std::uint8_t*& record) override {
    return calls().next_record(subscriber(), buffer, valid, &record) == kSuccess;
  }
  std::uint64_t take_dropped() override {
    std::size_t dropped = 0;
    if (calls().dropped == nullptr) return 0;
    return calls().dropped(subscriber(), nullptr, 0, &dropped) == kSuccess ? dropped : 0;
  }
  std::uint64_t device_bytes() override {
    return read(Attribute::kDeviceBufferSize) * read(Attribute::kDeviceBufferPreallocate);
  }
  // The ids belong to the subscriber and disappear with it.
  void push_external(std::uint64_t id) override {
    Subscriber const mine = subscriber();
    if (calls().push_external == nullptr || mine == nullptr) return;
    calls().push_external(mine, kExternalCustom0, id);
  }
  void pop_external() override {
    std::uint64_t last = 0;
    Subscriber const mine = subscriber();
    if (calls().pop_external == nullptr || mine == nullptr) return;
    calls().pop_external(mine, kExternalCustom0, &last);
  }
  void disable(Kind kind) override { calls().disable(subscriber(), kind, nullptr); }
  void disable_call(Kind kind, std::uint32_t function) override { switch_call(kind, function, 0); }
  void unsubscribe() override {
    library_.common.unsubscribe(subscriber_.exchange(nullptr, std::memory_order_acq_rel));
  }

 private:
  [[nodiscard]] const NewerCalls& calls() const { return library_.newer; }
  [[nodiscard]] Subscriber subscriber() const {
    return subscriber_.load(std::memory_order_acquire);
  }
  template <typename T>
  Result set(Attribute attribute, T& value) {
    std::size_t size = sizeof value;
    return calls().set_attribute(subscriber(), attribute, &size, &value);
  }
  Result switch_call(Kind kind, std::uint32_t function, std::uint8_t on) const {
    const auto call =
        kind == Kind::kDriver ? calls().enable_driver_call : calls().enable_runtime_call;
    return call == nullptr ? kNotThere : call(subscriber(), function, on);
  }
  [[nodiscard]] std::uint64_t read(Attribute attribute) const {
    std::size_t value = 0;
    std::size_t size = sizeof value;
    if (calls().get_attribute == nullptr) return 0;
    const Result result = calls().get_attribute(subscriber(), attribute, &size, &value);
    return result == kSuccess ? value : 0;
  }

  std::atomic<Subscriber> subscriber_{nullptr};
};

}  // namespace

Result Profiler::flush(Flush what) {
  return library_.common.flush_all(what == Flush::kForced ? kFlushForced : 0);
}

std::string Profiler::describe(Result result) const {
  const char* text = nullptr;
  if (result == kNotThere) return "this CUPTI has no such function";
  if (library_.common.get_result_string == nullptr ||
      library_.common.get_result_string(result, &text) != kSuccess || text == nullptr) {
    text = "error";
  }
  return std::string(text) + " (" + std::to_string(result) + ")";
}

const char* Profiler::function_name(Kind kind, std::uint32_t function) const {
  const char* name = nullptr;
  const std::uint32_t domain = kind == Kind::kDriver ? kDomainDriver : kDomainRuntime;
  if (library_.common.get_callback_name == nullptr ||
      library_.common.get_callback_name(domain, function, &name) != kSuccess) {
    return nullptr;
  }
  return name;
}

std::unique_ptr<Profiler> make_newer_profiler(const Library& library) {
  return std::make_unique<NewerProfiler>(library);
}
std::unique_ptr<Profiler> make_older_profiler(const Library& library) {
  return std::make_unique<OlderProfiler>(library);
}

}  // namespace weir::timeline::cupti
