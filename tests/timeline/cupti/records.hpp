#pragma once

// Records as CUPTI writes them, and a sink that knows the names.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/timeline/sink.hpp"
#include "tools/timeline/cupti/abi.hpp"

namespace weir::testing {

/// Sizes of CUPTI 13.0's records.
inline constexpr std::size_t kKernelBytes = 216;
inline constexpr std::size_t kCopyBytes = 96;

/// The bytes of a record, of the size that CUPTI reports: truncated, or with unknown fields.
template <typename Record>
[[nodiscard]] std::vector<std::uint8_t> bytes_of(const Record& record,
                                                 std::size_t size = sizeof(Record)) {
  std::vector<std::uint8_t> bytes(size, 0xEE);
  std::memcpy(bytes.data(), &record, std::min(size, sizeof record));
  return bytes;
}

/// A kernel "_Z4stepPf", which is `step(float*)`, on stream 7 of context 1 of device 0.
[[nodiscard]] inline timeline::cupti::KernelRecord kernel(std::uint32_t correlation,
                                                          std::uint64_t start, std::uint64_t end) {
  timeline::cupti::KernelRecord record{};
  record.kind = timeline::cupti::Kind::kConcurrentKernel;
  record.start = start;
  record.end = end;
  record.context = 1;
  record.stream = 7;
  record.correlation = correlation;
  record.name = "_Z4stepPf";
  return record;
}

[[nodiscard]] inline timeline::cupti::CopyRecord copy(std::uint8_t kind, std::uint64_t bytes) {
  timeline::cupti::CopyRecord record{};
  record.kind = timeline::cupti::Kind::kMemcpy;
  record.copy_kind = kind;
  record.bytes = bytes;
  record.start = 100;
  record.end = 200;
  record.context = 1;
  record.stream = 7;
  record.correlation = 5;
  return record;
}

/// A call of cudaLaunchKernel, or of the driver's cuLaunchKernel.
[[nodiscard]] inline timeline::cupti::CallRecord call(timeline::cupti::Kind kind,
                                                      std::uint32_t correlation) {
  timeline::cupti::CallRecord record{};
  record.kind = kind;
  record.function = kind == timeline::cupti::Kind::kDriver ? 307 : 211;
  record.start = 10;
  record.end = 20;
  record.thread = 4321;
  record.correlation = correlation;
  return record;
}

[[nodiscard]] inline timeline::cupti::ExternalRecord external(std::uint32_t correlation,
                                                              std::uint64_t id) {
  timeline::cupti::ExternalRecord record{};
  record.kind = timeline::cupti::Kind::kExternalCorrelation;
  record.external_kind = timeline::cupti::kExternalCustom0;
  record.external_id = id;
  record.correlation = correlation;
  return record;
}

/// Numbers names.
class NamingSink final : public TimelineSink {
 public:
  void write(const TimelineRecord& /*record*/) noexcept override {}
  std::uint32_t name(std::string_view text) noexcept override {
    if (text.empty()) return 0;
    const auto number = static_cast<std::uint32_t>(numbers_.size() + 1);
    const auto [place, added] = numbers_.try_emplace(std::string(text), number);
    if (added) texts_.emplace_back(text);
    return place->second;
  }
  std::uint32_t site(const char* /*file*/, int /*line*/) noexcept override { return 0; }
  std::uint64_t now() const noexcept override { return 1; }
  std::uint64_t at(std::int64_t steady_ns) const noexcept override {
    return static_cast<std::uint64_t>(steady_ns);
  }
  const char* note_failure() noexcept override { return nullptr; }
  void note_batch(std::uint32_t /*number*/) noexcept override {}

  [[nodiscard]] std::string text(std::uint32_t number) const {
    return number == 0 ? std::string() : texts_.at(number - 1);
  }

 private:
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> texts_;
};

/// Those of one kind.
[[nodiscard]] inline std::vector<TimelineRecord> of_kind(const std::vector<TimelineRecord>& all,
                                                         TimelineKind kind) {
  std::vector<TimelineRecord> some;
  for (const TimelineRecord& record : all) {
    if (record.kind == kind) some.push_back(record);
  }
  return some;
}

}  // namespace weir::testing
