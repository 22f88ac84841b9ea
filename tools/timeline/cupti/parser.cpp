#include "tools/timeline/cupti/parser.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>
#include <unordered_set>

#include "allocator/base/names.hpp"

namespace weir::timeline::cupti {
namespace {

constexpr std::size_t kMostOrigins = 1U << 16U;
constexpr std::size_t kMostKernels = 1U << 16U;
constexpr std::size_t kMostStreams = 1U << 16U;
constexpr std::uint64_t kContextStep = 1000000;  // above CUPTI's stream numbers
constexpr std::uint8_t kDriverCall = 1;          // detail of a kCall until join()

/// Copies the record and pads it with zeros.
template <typename Record>
Record as(std::span<const std::uint8_t> bytes) {
  static_assert(std::is_trivially_copyable_v<Record>);
  Record record{};
  if (!bytes.empty()) {  // memcpy takes no null pointer, not even for zero bytes
    std::memcpy(&record, bytes.data(), std::min(bytes.size(), sizeof record));
  }
  return record;
}

std::uint16_t device_of(std::uint32_t ordinal) noexcept {
  return ordinal < 0xFFFF ? static_cast<std::uint16_t>(ordinal + 1) : std::uint16_t{0};
}

/// Returns the entry of a number of CUPTI's, the first one for an unknown number.
template <typename Entry, std::size_t Size>
constexpr Entry entry_of(const std::array<Entry, Size>& table, std::uint32_t number) noexcept {
  return table[number < Size ? number : 0];
}

/// By CUPTI's kind of a copy. Arrays are on the device.
constexpr std::array<TimelineCopy, 11> kDirections{
    TimelineCopy::kOther,    TimelineCopy::kToDevice,   TimelineCopy::kFromDevice,
    TimelineCopy::kToDevice, TimelineCopy::kFromDevice, TimelineCopy::kOnDevice,
    TimelineCopy::kOnDevice, TimelineCopy::kOnDevice,   TimelineCopy::kOnDevice,
    TimelineCopy::kOnHost,   TimelineCopy::kPeer};
/// By TimelineCopy.
constexpr std::array<std::string_view, 6> kCopyNames{"copy",
                                                     "copy host to device",
                                                     "copy device to host",
                                                     "copy on the device",
                                                     "copy between devices",
                                                     "copy on the host"};
/// By CUPTI's type of a synchronization.
constexpr std::array<std::string_view, 5> kSyncNames{"wait", "wait for an event",
                                                     "stream waits for an event",
                                                     "wait for a stream", "wait for the device"};
/// By the upper half of CUPTI's kind of an overhead.
constexpr std::array<std::string_view, 8> kOverheadNames{"profiler",
                                                         "CUPTI hands over buffers",
                                                         "CUPTI instruments",
                                                         "CUPTI obtains memory",
                                                         "module is loaded",
                                                         "function is loaded",
                                                         "command buffer is full",
                                                         "CUPTI asks for a buffer"};
/// By CUPTI's kind of memory.
constexpr std::array<TimelineMemory, 8> kMemoryKinds{
    TimelineMemory::kOther,  TimelineMemory::kPageable, TimelineMemory::kPinned,
    TimelineMemory::kDevice, TimelineMemory::kArray,    TimelineMemory::kManaged,
    TimelineMemory::kDevice, TimelineMemory::kManaged};

std::string_view overhead_name(std::uint32_t kind) noexcept {
  if (kind == 1) return "driver compiles";
  return entry_of(kOverheadNames, (kind & 0xFFFFU) == 0 ? kind >> 16U : 0);
}

std::string readable(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return text != nullptr ? std::string(text.get()) : std::string(mangled);
}

}  // namespace

void Parser::read(std::span<const std::uint8_t> bytes, TimelineSink& names,
                  std::vector<TimelineRecord>& records) {
  switch (as<Kind>(bytes)) {
    case Kind::kConcurrentKernel:
      return read_kernel(as<KernelRecord>(bytes), names, records);
    case Kind::kMemcpy:
      return read_copy(as<CopyRecord>(bytes), names, records);
    case Kind::kMemcpyPeer:
      return read_copy(as<PeerCopyRecord>(bytes), names, records);
    case Kind::kMemset:
      return read_set(as<SetRecord>(bytes), names, records);
    case Kind::kSynchronization:
      return read_sync(as<SyncRecord>(bytes), names, records);
    case Kind::kMemory:
      return read_memory(as<MemoryRecord>(bytes), names, records);
    case Kind::kMemoryPool:
      return read_pool(as<PoolRecord>(bytes), records);
    case Kind::kDriver:
    case Kind::kRuntime:
      return read_call(as<CallRecord>(bytes), names, records);
    case Kind::kOverhead:
      return read_overhead(as<OverheadRecord>(bytes), names, records);
    case Kind::kExternalCorrelation:
      return read_external(as<ExternalRecord>(bytes));
  }
  ++skipped_.unknown;
}

void Parser::join(std::size_t first, std::vector<TimelineRecord>& records) {
  std::unordered_set<std::uint64_t> runtime;
  for (std::size_t i = first; i < records.size(); ++i) {
    TimelineRecord& record = records[i];
    if (record.kind == TimelineKind::kCall && record.detail != kDriverCall) {
      runtime.insert(record.id);
    }
    const auto found = origins_.find(static_cast<std::uint32_t>(record.id));
    if (record.id == 0 || found == origins_.end()) continue;
    const Origin& origin = found->second;
    record.batch = static_cast<std::uint32_t>(origin.external);
    record.site = static_cast<std::uint32_t>(origin.external >> 32U);
    if (record.kind == TimelineKind::kSync) record.thread = origin.thread;
  }
  const auto inner = [&runtime](const TimelineRecord& record) {
    return record.kind == TimelineKind::kCall && record.detail == kDriverCall &&
           runtime.contains(record.id);
  };
  const auto begin = records.begin() + static_cast<std::ptrdiff_t>(first);
  records.erase(std::remove_if(begin, records.end(), inner), records.end());
  for (std::size_t i = first; i < records.size(); ++i) {
    if (records[i].kind == TimelineKind::kCall) records[i].detail = 0;
  }
}

template <typename Record>
bool Parser::set_times(const Record& from, TimelineRecord& record) {
  if (from.start == 0 || from.end == 0) {
    ++skipped_.untimed;
    return false;
  }
  if (from.end < from.start) {
    ++skipped_.backwards;
    return false;
  }
  record.begin = time(from.start);
  record.end = time(from.end);
  return true;
}

void Parser::forget_origins() noexcept {
  origins_.clear();
  order_.clear();
}

std::uint64_t Parser::number_of(std::uint32_t context, std::uint32_t stream) {
  const auto place = contexts_.try_emplace(context, contexts_.size()).first->second;
  return place * kContextStep + stream % kContextStep;
}

std::uint64_t Parser::stream_number(const Place& place, std::uint64_t at, TimelineSink& names,
                                    std::vector<TimelineRecord>& records) {
  const std::uint64_t key = (std::uint64_t{place.context} << 32U) | place.stream;
  if (const auto found = streams_.find(key); found != streams_.end()) return found->second;
  const std::uint64_t number = number_of(place.context, place.stream);
  if (streams_.size() >= kMostStreams) return number;
  streams_.emplace(key, number);

  std::string text = "stream " + std::to_string(place.stream);
  if (number >= kContextStep) {  // of another than the first context
    text += " of context " + std::to_string(place.context);
  }
  TimelineRecord record{.begin = at, .end = at};
  record.kind = TimelineKind::kStream;
  record.stream = number;
  record.device = device_of(place.device);
  record.name = names.name(text);
  records.push_back(record);
  return number;
}

std::uint32_t Parser::kernel_name(const char* mangled, TimelineSink& names) {
  if (mangled == nullptr) return names.name("kernel");
  if (const auto found = kernels_.find(mangled); found != kernels_.end()) return found->second;
  const std::uint32_t number = names.name(readable(mangled));
  if (kernels_.size() < kMostKernels) kernels_.emplace(mangled, number);
  return number;
}

Parser::Origin& Parser::origin(std::uint32_t correlation) {
  const auto [place, added] = origins_.try_emplace(correlation);
  if (!added) return place->second;
  order_.push_back(correlation);
  if (order_.size() > kMostOrigins) {
    origins_.erase(order_.front());
    order_.pop_front();
  }
  return place->second;
}

void Parser::read_kernel(const KernelRecord& from, TimelineSink& names,
                         std::vector<TimelineRecord>& records) {
  TimelineRecord record;
  if (!set_times(from, record)) return;
  record.kind = TimelineKind::kKernel;
  record.id = from.correlation;
  record.name = kernel_name(from.name, names);
  record.device = device_of(from.device);
  record.stream =
      stream_number({from.device, from.context, from.stream}, record.begin, names, records);
  records.push_back(record);
}

template <typename Record>
void Parser::read_copy(const Record& from, TimelineSink& names,
                       std::vector<TimelineRecord>& records) {
  TimelineRecord record;
  if (!set_times(from, record)) return;
  const TimelineCopy direction = entry_of(kDirections, from.copy_kind);
  record.kind = TimelineKind::kCopy;
  record.detail = static_cast<std::uint8_t>(direction);
  record.id = from.correlation;
  record.bytes = from.bytes;
  record.name = names.name(kCopyNames.at(record.detail));
  record.device = device_of(from.device);
  record.stream =
      stream_number({from.device, from.context, from.stream}, record.begin, names, records);
  records.push_back(record);
}

void Parser::read_set(const SetRecord& from, TimelineSink& names,
                      std::vector<TimelineRecord>& records) {
  TimelineRecord record;
  if (!set_times(from, record)) return;
  record.kind = TimelineKind::kSet;
  record.id = from.correlation;
  record.bytes = from.bytes;
  record.name = names.name("set");
  record.device = device_of(from.device);
  record.stream =
      stream_number({from.device, from.context, from.stream}, record.begin, names, records);
  records.push_back(record);
}

void Parser::read_sync(const SyncRecord& from, TimelineSink& names,
                       std::vector<TimelineRecord>& records) {
  TimelineRecord record;
  if (!set_times(from, record)) return;
  record.kind = TimelineKind::kSync;
  record.id = from.correlation;
  record.name = names.name(entry_of(kSyncNames, from.type));
  // These records name no device, so a stream that no other record has named stays unnamed.
  if (from.stream != kNoStream) record.stream = number_of(from.context, from.stream);
  records.push_back(record);
}

void Parser::read_memory(const MemoryRecord& from, TimelineSink& names,
                         std::vector<TimelineRecord>& records) {
  if (from.timestamp == 0 || (from.operation != 1 && from.operation != 2)) {
    ++skipped_.untimed;
    return;
  }
  TimelineRecord record;
  record.begin = record.end = time(from.timestamp);
  record.kind = from.operation == 1 ? TimelineKind::kDriverAlloc : TimelineKind::kDriverFree;
  record.detail = static_cast<std::uint8_t>(entry_of(kMemoryKinds, from.memory_kind));
  record.id = from.correlation;
  record.sequence = from.address;
  record.bytes = from.bytes;
  record.device = device_of(from.device);
  if (from.source != nullptr) record.name = names.name(from.source);
  records.push_back(record);
}

void Parser::read_pool(const PoolRecord& from, std::vector<TimelineRecord>& records) {
  if (from.timestamp == 0) {
    ++skipped_.untimed;
    return;
  }
  TimelineRecord record;
  record.begin = record.end = time(from.timestamp);
  record.kind = TimelineKind::kDriverPool;
  record.detail = static_cast<std::uint8_t>(from.operation);
  record.id = from.correlation;
  record.sequence = from.address;
  record.bytes = from.utilized;
  record.requested = from.size;
  record.device = device_of(from.device);
  records.push_back(record);
}

void Parser::read_call(const CallRecord& from, TimelineSink& names,
                       std::vector<TimelineRecord>& records) {
  TimelineRecord record;
  if (!set_times(from, record)) return;
  const char* const name = function_name_(from.kind, from.function);
  record.kind = TimelineKind::kCall;
  record.detail = from.kind == Kind::kDriver ? kDriverCall : std::uint8_t{0};
  record.id = from.correlation;
  record.name = names.name(name != nullptr ? name : "call");
  record.thread = from.thread;
  origin(from.correlation).thread = from.thread;
  records.push_back(record);
}

void Parser::read_overhead(const OverheadRecord& from, TimelineSink& names,
                           std::vector<TimelineRecord>& records) {
  TimelineRecord record;
  if (!set_times(from, record)) return;
  record.kind = TimelineKind::kOverhead;
  record.id = from.correlation;
  record.name = names.name(overhead_name(from.overhead));
  if (from.object == 2) record.thread = from.thread;
  records.push_back(record);
}

void Parser::read_external(const ExternalRecord& from) {
  if (from.external_kind != kExternalCustom0) return;  // another profiler's
  origin(from.correlation).external = from.external_id;
}

}  // namespace weir::timeline::cupti
