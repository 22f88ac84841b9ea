#include "tools/timeline/chrome/process_builder.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "tools/timeline/chrome/text.hpp"

namespace weir::timeline {

std::uint32_t ProcessBuilder::name(std::string_view text) {
  if (text.empty()) return 0;
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  std::string kept = valid_utf8(text);
  if (kept != text) return name(kept);
  name_bytes_ += kept.size();
  if (names_.size() > state_.limits.max_names || name_bytes_ > state_.limits.max_name_bytes) {
    throw UsageError(state_.path + ": has too many names; allowed are " +
                     std::to_string(state_.limits.max_names) + " of " +
                     format_bytes(Bytes{state_.limits.max_name_bytes}));
  }
  const auto number = static_cast<std::uint32_t>(names_.size());
  numbers_.emplace(names_.emplace_back(std::move(kept)), number);
  return number;
}

void ProcessBuilder::add(const TimelineRecord& record) {
  if (++state_.records > state_.limits.max_records) {
    throw UsageError(state_.path + ": has too many events; allowed are " +
                     std::to_string(state_.limits.max_records));
  }
  if (pieces_.empty() || pieces_.back().size() == kPiece) pieces_.emplace_back().reserve(kPiece);
  pieces_.back().push_back(record);
  ++size_;
}

Process ProcessBuilder::finish() {
  Process process;
  process.info = std::move(info);
  process.complete = complete;
  process.lost = lost;
  numbers_.clear();
  process.names.assign(std::move_iterator(names_.begin()), std::move_iterator(names_.end()));
  process.records.reserve(size_);
  while (!pieces_.empty()) {
    const std::vector<TimelineRecord>& piece = pieces_.front();
    process.records.insert(process.records.end(), piece.begin(), piece.end());
    pieces_.pop_front();
  }
  if (!std::is_sorted(process.records.begin(), process.records.end(), comes_before)) {
    std::sort(process.records.begin(), process.records.end(), comes_before);
  }
  return process;
}

bool comes_before(const TimelineRecord& a, const TimelineRecord& b) noexcept {
  // Compares all fields, so that the result does not depend on the order in the file.
  const auto key = [](const TimelineRecord& r) {
    return std::tuple(r.begin, r.sequence, ~r.end, r.kind, r.source, r.batch, r.thread, r.device,
                      r.stream, r.id, r.bytes, r.requested, r.detail, r.allocated, r.awaiting,
                      r.cached);
  };
  if (a.begin != b.begin) return a.begin < b.begin;
  return key(a) < key(b);
}

}  // namespace weir::timeline
