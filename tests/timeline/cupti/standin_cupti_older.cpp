// CUPTI's exports until 13.1, which later versions still have.

#include <algorithm>
#include <cstring>
#include <string>

#include "timeline/cupti/standin_cupti_library.hpp"

namespace cupti = weir::timeline::cupti;
using cupti::Result;

using weir::testing::standin_cupti_library;

// NOLINTBEGIN(readability-identifier-naming): CUPTI's names
extern "C" {

Result cuptiGetResultString(Result result, const char** text) {
  ENTER("cuptiGetResultString", kBoth)
  *text = result == cupti::kUnknownError ? "CUPTI_ERROR_UNKNOWN" : "CUPTI_ERROR";
  return 0;
}
Result cuptiGetCallbackName(std::uint32_t domain, std::uint32_t function, const char** name) {
  ENTER("cuptiGetCallbackName", kBoth)
  if (domain == cupti::kDomainRuntime && function == 211) {
    *name = "cudaLaunchKernel_v7000";
    return 0;
  }
  if (domain == cupti::kDomainDriver && function == 307) {
    *name = "cuLaunchKernel";
    return 0;
  }
  return 1;
}
Result cuptiActivityFlushAll(std::uint32_t flag) {
  ENTER("cuptiActivityFlushAll", kBoth)
  return standin_cupti_library().flush(flag);
}
Result cuptiUnsubscribe(cupti::Subscriber subscriber) {
  ENTER("cuptiUnsubscribe", kBoth)
  return standin_cupti_library().unsubscribe(subscriber);
}
Result cuptiFinalize() {
  ENTER("cuptiFinalize", kBoth)
  return 0;
}
Result cuptiSubscribe(cupti::Subscriber* subscriber, cupti::Callback /*callback*/, void* /*user*/) {
  ENTER("cuptiSubscribe", kOlder)
  return standin_cupti_library().subscribe(subscriber, nullptr, weir::testing::kOlder);
}
Result cuptiActivityGetAttribute(cupti::Attribute attribute, std::size_t* size, void* value) {
  ENTER("cuptiActivityGetAttribute", kOlder)
  const std::size_t number = attribute == cupti::Attribute::kDeviceBufferSize ? 3200000 : 3;
  std::memcpy(value, &number, std::min(*size, sizeof number));
  return 0;
}
Result cuptiActivitySetAttribute(cupti::Attribute /*attribute*/, std::size_t* /*size*/,
                                 void* /*value*/) {
  ENTER("cuptiActivitySetAttribute", kOlder)
  return standin_cupti_library().set_up("cuptiActivitySetAttribute");
}
Result cuptiSetThreadIdType(std::uint32_t /*type*/) {
  ENTER("cuptiSetThreadIdType", kOlder)
  return standin_cupti_library().set_up("cuptiSetThreadIdType");
}
Result cuptiActivityEnableAllocationSource(std::uint8_t /*on*/) {
  ENTER("cuptiActivityEnableAllocationSource", kOlder)
  return standin_cupti_library().set_up("cuptiActivityEnableAllocationSource");
}
Result cuptiActivityRegisterTimestampCallback(cupti::Timestamp now) {
  ENTER("cuptiActivityRegisterTimestampCallback", kOlder)
  standin_cupti_library().set_up("cuptiActivityRegisterTimestampCallback");
  return standin_cupti_library().set_timestamp(now);
}
Result cuptiActivityRegisterCallbacks(cupti::BufferRequested requested,
                                      cupti::BufferCompleted completed) {
  ENTER("cuptiActivityRegisterCallbacks", kOlder)
  standin_cupti_library().set_up("cuptiActivityRegisterCallbacks");
  return standin_cupti_library().register_callbacks(requested, completed, nullptr, nullptr);
}
Result cuptiActivityEnable(cupti::Kind kind) {
  ENTER("cuptiActivityEnable", kOlder)
  ENTER(("cuptiActivityEnable:" + std::to_string(static_cast<std::uint32_t>(kind))).c_str(), kOlder)
  return standin_cupti_library().enable(kind, true);
}
Result cuptiActivityDisable(cupti::Kind kind) {
  ENTER("cuptiActivityDisable", kOlder)
  return standin_cupti_library().enable(kind, false);
}
Result cuptiActivityEnableDriverApi(std::uint32_t function, std::uint8_t on) {
  ENTER("cuptiActivityEnableDriverApi", kOlder)
  return standin_cupti_library().enable_call(cupti::Kind::kDriver, function, on != 0);
}
Result cuptiActivityEnableRuntimeApi(std::uint32_t function, std::uint8_t on) {
  ENTER("cuptiActivityEnableRuntimeApi", kOlder)
  return standin_cupti_library().enable_call(cupti::Kind::kRuntime, function, on != 0);
}
Result cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, std::uint8_t** record) {
  ENTER("cuptiActivityGetNextRecord", kOlder)
  return standin_cupti_library().next_record(buffer, valid, record);
}
Result cuptiActivityGetNumDroppedRecords(cupti::Context /*context*/, std::uint32_t /*stream*/,
                                         std::size_t* dropped) {
  ENTER("cuptiActivityGetNumDroppedRecords", kOlder)
  return standin_cupti_library().take_dropped(dropped);
}
Result cuptiActivityPushExternalCorrelationId(std::uint32_t /*kind*/, std::uint64_t id) {
  ENTER("cuptiActivityPushExternalCorrelationId", kOlder)
  return standin_cupti_library().push(id);
}
Result cuptiActivityPopExternalCorrelationId(std::uint32_t /*kind*/, std::uint64_t* id) {
  ENTER("cuptiActivityPopExternalCorrelationId", kOlder)
  return standin_cupti_library().pop(id);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
