#include "tools/timeline/perfetto/packed.hpp"

#include <cstddef>
#include <type_traits>

#include "tools/timeline/perfetto/wire.hpp"

namespace weir::timeline {
namespace {

/// Bits for the fields that differ from their prediction; rarely set ones come last.
enum Bit : std::uint8_t {
  kBegin,
  kEnd,
  kId,
  kBytes,
  kRequested,
  kName,
  kSite,
  kThread,
  kBatch,
  kStream,
  kSource,
  kAllocated,
  kAwaiting,
  kCached,
  kSequence,
  kDetail,
  kDevice,
  kReserved,
  kBits
};

/// Computes the differences to write.
class Encoder {
 public:
  template <typename Value>
  void field(Bit bit, Value& value, Value expected) {
    const auto by = static_cast<std::make_signed_t<Value>>(static_cast<Value>(value - expected));
    if (by == 0) return;
    mask_ |= 1U << bit;
    differences_[count_++] = wire::zigzag(by);
  }
  void put(TimelineKind kind, std::string& out) const {
    out.push_back(static_cast<char>(kind));
    wire::put_varint(out, mask_);
    for (std::size_t i = 0; i < count_; ++i) wire::put_varint(out, differences_[i]);
  }

 private:
  std::uint64_t mask_ = 0;
  std::size_t count_ = 0;
  std::array<std::uint64_t, kBits> differences_;
};

class Decoder {
 public:
  Decoder(std::string_view& in, std::uint64_t mask) : in_(in), mask_(mask) {}
  template <typename Value>
  void field(Bit bit, Value& value, Value expected) {
    value = expected;
    if ((mask_ >> bit & 1U) == 0 || cut_) return;
    const auto by = wire::take_varint(in_);
    cut_ = !by;
    if (by) value = static_cast<Value>(expected + static_cast<Value>(wire::unzigzag(*by)));
  }
  [[nodiscard]] bool cut() const noexcept { return cut_; }

 private:
  std::string_view& in_;
  std::uint64_t mask_;
  bool cut_ = false;
};

constexpr std::size_t place(std::uint64_t key, TimelineKind kind, std::size_t size) {
  const std::uint64_t mixed =
      (key + static_cast<std::uint64_t>(kind) * 0xD6E8FEB86659FD93ULL) * 0x9E3779B97F4A7C15ULL;
  return static_cast<std::size_t>(mixed >> 40U) % size;
}

constexpr bool has_counts(TimelineKind kind) { return kind <= TimelineKind::kPoolEnd; }

}  // namespace

template <typename Coder>
void Packed::walk(TimelineRecord& r, Coder& coder) const {
  const TimelineRecord& last = last_[static_cast<std::size_t>(r.kind)];
  const bool executes = r.kind == TimelineKind::kExecute;
  const bool of_operation = executes || r.kind == TimelineKind::kSubmit;
  const bool of_block = r.kind == TimelineKind::kFree || r.kind == TimelineKind::kUse;

  coder.field(kSource, r.source, last.source);
  coder.field(kThread, r.thread, last.thread);
  coder.field(kBegin, r.begin, time_);
  const std::uint64_t follows = next_id_[place(last.id, r.kind, next_id_.size())];
  coder.field(kId, r.id, of_operation ? last.id + 1 : follows != 0 ? follows : last.id);
  const Operation& operation = operations_[place(r.id, TimelineKind::kSubmit, kTable)];
  coder.field(kName, r.name,
              executes ? operation.name : next_name_[place(last.name, r.kind, kTable)]);
  const Named& named = named_[place(r.name, r.kind, kTable)];
  const Block& block = blocks_[place(r.id, TimelineKind::kAllocate, blocks_.size())];
  coder.field(kDetail, r.detail, named.detail);
  coder.field(kBytes, r.bytes, of_block ? block.bytes : named.bytes);
  coder.field(kRequested, r.requested,
              of_block ? block.requested : named.requested + (r.bytes - named.bytes));
  coder.field(kStream, r.stream,
              of_block   ? block.stream
              : executes ? operation.stream
                         : last.stream);
  coder.field(kEnd, r.end, r.begin + named.duration);
  const Counts& counts = counts_[r.source % counts_.size()];
  const bool counted = has_counts(r.kind);
  coder.field(kSequence, r.sequence, counted ? counts.sequence + 1 : last.sequence);
  const Change& change = changes_[static_cast<std::size_t>(r.kind)][r.detail % 8];
  coder.field(kAllocated, r.allocated,
              counted ? counts.allocated + change.allocated * r.bytes : last.allocated);
  coder.field(kAwaiting, r.awaiting,
              counted ? counts.awaiting + change.awaiting * r.bytes : last.awaiting);
  coder.field(kCached, r.cached, counted ? counts.cached + change.cached * r.bytes : last.cached);
  coder.field(kBatch, r.batch, executes ? operation.batch : batches_[r.thread % batches_.size()]);
  coder.field(kSite, r.site, executes ? operation.site : named.site);
  coder.field(kDevice, r.device, last.device);
  coder.field(kReserved, r.reserved, std::uint16_t{0});
}

void Packed::learn(const TimelineRecord& r) {
  TimelineRecord& last = last_[static_cast<std::size_t>(r.kind)];
  next_id_[place(last.id, r.kind, next_id_.size())] = r.id;
  next_name_[place(last.name, r.kind, kTable)] = r.name;
  named_[place(r.name, r.kind, kTable)] = {.bytes = r.bytes,
                                           .requested = r.requested,
                                           .duration = r.end - r.begin,
                                           .site = r.site,
                                           .detail = r.detail};
  if (r.kind == TimelineKind::kAllocate || r.kind == TimelineKind::kLive) {
    blocks_[place(r.id, TimelineKind::kAllocate, blocks_.size())] = {
        .bytes = r.bytes, .requested = r.requested, .stream = r.stream};
  }
  if (r.kind == TimelineKind::kSubmit) {
    operations_[place(r.id, TimelineKind::kSubmit, kTable)] = {
        .name = r.name, .site = r.site, .batch = r.batch, .stream = r.stream};
  }
  if (has_counts(r.kind)) {
    Counts& counts = counts_[r.source % counts_.size()];
    if (r.bytes != 0) {
      // Only small multiples count; any other change came from another record.
      const auto multiple = [&](std::uint64_t after, std::uint64_t before) -> std::uint64_t {
        const std::uint64_t by = after - before;
        return by == r.bytes ? 1 : by == 0 - r.bytes ? ~std::uint64_t{0} : 0;
      };
      changes_[static_cast<std::size_t>(r.kind)][r.detail % 8] = {
          .allocated = multiple(r.allocated, counts.allocated),
          .awaiting = multiple(r.awaiting, counts.awaiting),
          .cached = multiple(r.cached, counts.cached)};
    }
    counts = {.sequence = r.sequence,
              .allocated = r.allocated,
              .awaiting = r.awaiting,
              .cached = r.cached};
  }
  batches_[r.thread % batches_.size()] = r.batch;
  time_ = r.begin;
  last = r;
}

void Packed::pack(const TimelineRecord& record, std::string& out) {
  TimelineRecord copy = record;
  Encoder encoder;
  walk(copy, encoder);
  encoder.put(record.kind, out);
  learn(record);
}

Packed::Found Packed::unpack(std::string_view& in, TimelineRecord& record) {
  std::string_view rest = in;
  if (rest.empty()) return Found::kCut;
  const auto kind = static_cast<std::uint8_t>(rest[0]);
  if (kind >= kTimelineKinds) return Found::kNonsense;
  rest.remove_prefix(1);
  const auto mask = wire::take_varint(rest);
  if (!mask) return Found::kCut;
  if (*mask >> kBits != 0) return Found::kNonsense;
  TimelineRecord found;
  found.kind = static_cast<TimelineKind>(kind);
  Decoder decoder(rest, *mask);
  walk(found, decoder);
  if (decoder.cut()) return Found::kCut;
  learn(found);
  record = found;
  in = rest;
  return Found::kRecord;
}

}  // namespace weir::timeline
