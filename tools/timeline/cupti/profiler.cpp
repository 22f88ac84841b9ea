#include "tools/timeline/cupti/profiler.hpp"

#include <array>
#include <span>

#include "tools/timeline/cupti/buffers.hpp"

namespace weir::timeline::cupti {
namespace {

constexpr Result kNotThere = -1;  // this CUPTI lacks the function
constexpr const char* kName = "Weir";

// CUPTI passes no user pointer to these.
void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  const std::span<std::uint8_t> taken = activity_buffers().take();
  *buffer = taken.data();
  *size = taken.size();
  *most = 0;  // no limit: as many records as fit
}
void requested_newer(std::uint8_t** buffer, std::size_t* size, std::size_t* most, void* /*info*/) {
  requested(buffer, size, most);
}
void completed(Context /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer,
               std::size_t /*size*/, std::size_t valid) {
  activity_buffers().complete(buffer, valid);
}
void completed_newer(std::uint8_t* buffer, std::size_t /*size*/, std::size_t valid,
                     void* /*info*/) {
  activity_buffers().complete(buffer, valid);
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

template <typename Function, typename... Arguments>
Result call_if_there(Function function, Arguments... arguments) {
  return function == nullptr ? kNotThere : function(arguments...);
}

}  // namespace

/// Calls a function of this generation, if this CUPTI has it.
template <typename Older, typename Newer, typename... Arguments>
Result Profiler::call(Older older, Newer newer, Arguments... arguments) const {
  if (!is_newer_) return call_if_there(library_.older.*older, arguments...);
  // External ids belong to the subscriber and disappear with it.
  Subscriber const mine = subscriber_.load(std::memory_order_acquire);
  return mine == nullptr ? kNotThere : call_if_there(library_.newer.*newer, mine, arguments...);
}

template <typename Value>
Result Profiler::set(Attribute attribute, Value value) const {
  std::size_t size = sizeof value;
  return call(&OlderCalls::set_attribute, &NewerCalls::set_attribute, attribute, &size, &value);
}

std::uint64_t Profiler::read(Attribute attribute) const {
  std::size_t value = 0;
  std::size_t size = sizeof value;
  const Result result =
      call(&OlderCalls::get_attribute, &NewerCalls::get_attribute, attribute, &size, &value);
  return result == kSuccess ? value : 0;
}

Result Profiler::switch_call(Kind kind, std::uint32_t function, std::uint8_t on) const {
  if (kind == Kind::kDriver) {
    return call(&OlderCalls::enable_driver_call, &NewerCalls::enable_driver_call, function, on);
  }
  return call(&OlderCalls::enable_runtime_call, &NewerCalls::enable_runtime_call, function, on);
}

Result Profiler::subscribe(std::string& holder) {
  Subscriber mine = nullptr;
  const std::size_t size = is_newer_ ? sizeof(SubscriberParams) : kOlderSubscriberParams;
  const Result result = library_.common.subscribe2 != nullptr
                            ? subscribe_with(library_.common, size, mine, holder)
                            : library_.older.subscribe(&mine, ignore, nullptr);
  subscriber_.store(mine, std::memory_order_release);
  return result;
}

Result Profiler::set_zeroed_buffers() { return set(Attribute::kZeroedBuffer, std::uint8_t{1}); }

Result Profiler::set_system_thread_ids() {
  if (is_newer_) return set(Attribute::kThreadIdType, kSystemThreadIds);
  return call_if_there(library_.older.set_thread_id_type, kSystemThreadIds);
}

Result Profiler::set_allocation_source() {
  if (is_newer_) return set(Attribute::kAllocationSource, std::uint8_t{1});
  return call_if_there(library_.older.enable_allocation_source, std::uint8_t{1});
}

Result Profiler::set_timestamp(Timestamp now) {
  if (is_newer_) return set(Attribute::kTimestampCallback, now);
  return call_if_there(library_.older.register_timestamp, now);
}

Result Profiler::register_buffers() {
  if (!is_newer_) return library_.older.register_callbacks(requested, completed);
  return library_.newer.register_callbacks(subscriber_.load(), requested_newer, completed_newer);
}

Result Profiler::enable(Kind kind) {
  if (!is_newer_) return library_.older.enable(kind);
  return library_.newer.enable(subscriber_.load(), kind, nullptr);
}

Result Profiler::enable_call(Kind kind, std::uint32_t function) {
  return switch_call(kind, function, 1);
}

bool Profiler::next_record(std::uint8_t* buffer, std::size_t valid, std::uint8_t*& record) {
  return call(&OlderCalls::next_record, &NewerCalls::next_record, buffer, valid, &record) ==
         kSuccess;
}

std::uint64_t Profiler::take_dropped() {
  std::size_t dropped = 0;
  const Result result =
      call(&OlderCalls::dropped, &NewerCalls::dropped, nullptr, std::uint32_t{0}, &dropped);
  return result == kSuccess ? dropped : 0;
}

std::uint64_t Profiler::device_bytes() {
  return read(Attribute::kDeviceBufferSize) * read(Attribute::kDeviceBufferPreallocate);
}

void Profiler::push_external(std::uint64_t id) {
  (void)call(&OlderCalls::push_external, &NewerCalls::push_external, kExternalCustom0, id);
}

void Profiler::pop_external() {
  std::uint64_t last = 0;
  (void)call(&OlderCalls::pop_external, &NewerCalls::pop_external, kExternalCustom0, &last);
}

void Profiler::disable(Kind kind) {
  if (is_newer_) {
    library_.newer.disable(subscriber_.load(), kind, nullptr);
  } else {
    library_.older.disable(kind);
  }
}

void Profiler::disable_call(Kind kind, std::uint32_t function) { switch_call(kind, function, 0); }

void Profiler::unsubscribe() {
  library_.common.unsubscribe(subscriber_.exchange(nullptr, std::memory_order_acq_rel));
}

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

}  // namespace weir::timeline::cupti
