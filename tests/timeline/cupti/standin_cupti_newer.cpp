// CUPTI's additional exports since 13.3, for several simultaneous subscribers.

#include <algorithm>
#include <cstring>
#include <string>

#include "timeline/cupti/standin_cupti_library.hpp"

namespace cupti = weir::timeline::cupti;
using cupti::Result;
using cupti::Subscriber;

using weir::testing::standin_cupti_library;

// NOLINTBEGIN(readability-identifier-naming): CUPTI's names
extern "C" {

Result cuptiSubscribe_v2(Subscriber* subscriber, cupti::Callback /*callback*/, void* /*user*/,
                         cupti::SubscriberParams* params) {
  // Without the last field the caller wants to be the only one, and the older functions.
  const bool multiple = params->size >= sizeof *params && params->allow_multiple != 0;
  ENTER(multiple ? "cuptiSubscribe_v2(multiple)" : "cuptiSubscribe_v2", kBoth)
  std::string old;
  const Result result = standin_cupti_library().subscribe(
      subscriber, &old, multiple ? weir::testing::kNewer : weir::testing::kOlder);
  old.resize(std::min(old.size(), params->old_subscriber_size - 1));
  if (params->old_subscriber != nullptr) {
    std::memcpy(params->old_subscriber, old.c_str(), old.size() + 1);
  }
  return result;
}
Result cuptiActivityGetAttribute_v2(Subscriber subscriber, cupti::Attribute attribute,
                                    std::size_t* size, void* value) {
  ENTER_AS(subscriber, "cuptiActivityGetAttribute_v2")
  const std::size_t number = attribute == cupti::Attribute::kDeviceBufferSize ? 3200000 : 3;
  std::memcpy(value, &number, std::min(*size, sizeof number));
  return 0;
}
Result cuptiActivitySetAttribute_v2(Subscriber subscriber, cupti::Attribute attribute,
                                    std::size_t* size, void* value) {
  ENTER_AS(subscriber, "cuptiActivitySetAttribute_v2")
  standin_cupti_library().set_up("cuptiActivitySetAttribute_v2");
  if (attribute != cupti::Attribute::kTimestampCallback) return 0;
  cupti::Timestamp now = nullptr;
  if (*size != sizeof now) return 1;
  std::memcpy(&now, value, sizeof now);
  return standin_cupti_library().set_timestamp(now);
}
Result cuptiActivityRegisterCallbacks_v2(Subscriber subscriber, cupti::BufferRequested2 requested,
                                         cupti::BufferCompleted2 completed) {
  ENTER_AS(subscriber, "cuptiActivityRegisterCallbacks_v2")
  standin_cupti_library().set_up("cuptiActivityRegisterCallbacks_v2");
  return standin_cupti_library().register_callbacks(nullptr, nullptr, requested, completed);
}
Result cuptiActivityEnable_v2(Subscriber subscriber, cupti::Kind kind, void* /*config*/) {
  ENTER_AS(subscriber, "cuptiActivityEnable_v2")
  ENTER(("cuptiActivityEnable_v2:" + std::to_string(static_cast<std::uint32_t>(kind))).c_str(),
        kNewer)
  return standin_cupti_library().enable(kind, true);
}
Result cuptiActivityDisable_v2(Subscriber subscriber, cupti::Kind kind, void* /*config*/) {
  ENTER_AS(subscriber, "cuptiActivityDisable_v2")
  return standin_cupti_library().enable(kind, false);
}
Result cuptiActivityEnableDriverApi_v2(Subscriber subscriber, std::uint32_t function,
                                       std::uint8_t on) {
  ENTER_AS(subscriber, "cuptiActivityEnableDriverApi_v2")
  return standin_cupti_library().enable_call(cupti::Kind::kDriver, function, on != 0);
}
Result cuptiActivityEnableRuntimeApi_v2(Subscriber subscriber, std::uint32_t function,
                                        std::uint8_t on) {
  ENTER_AS(subscriber, "cuptiActivityEnableRuntimeApi_v2")
  return standin_cupti_library().enable_call(cupti::Kind::kRuntime, function, on != 0);
}
Result cuptiActivityGetNextRecord_v2(Subscriber subscriber, std::uint8_t* buffer, std::size_t valid,
                                     std::uint8_t** record) {
  ENTER_AS(subscriber, "cuptiActivityGetNextRecord_v2")
  return standin_cupti_library().next_record(buffer, valid, record);
}
Result cuptiActivityGetNumDroppedRecords_v2(Subscriber subscriber, cupti::Context /*context*/,
                                            std::uint32_t /*stream*/, std::size_t* dropped) {
  ENTER_AS(subscriber, "cuptiActivityGetNumDroppedRecords_v2")
  return standin_cupti_library().take_dropped(dropped);
}
Result cuptiActivityPushExternalCorrelationId_v2(Subscriber subscriber, std::uint32_t /*kind*/,
                                                 std::uint64_t id) {
  ENTER_AS(subscriber, "cuptiActivityPushExternalCorrelationId_v2")
  return standin_cupti_library().push(id);
}
Result cuptiActivityPopExternalCorrelationId_v2(Subscriber subscriber, std::uint32_t /*kind*/,
                                                std::uint64_t* id) {
  ENTER_AS(subscriber, "cuptiActivityPopExternalCorrelationId_v2")
  return standin_cupti_library().pop(id);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
