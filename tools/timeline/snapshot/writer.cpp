#include "tools/timeline/snapshot/writer.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/timeline/model/tracks.hpp"
#include "tools/timeline/snapshot/history.hpp"

namespace weir::timeline {
namespace {

/// Builds one pickle as PyTorch's memory viewer reads them: protocol 2, and a fixed set of opcodes.
/// https://docs.python.org/3/library/pickletools.html
///
/// Put values one after another; dictionaries and lists contain the values
/// between their begin and end.
class Pickle {
 public:
  Pickle() : bytes_("\x80\x02") {}

  void put(std::int64_t number);
  /// Puts valid UTF-8. Equal texts are written once.
  void put(std::string_view text);
  void put_false() { bytes_ += '\x89'; }

  void begin_dict() { bytes_ += "}("; }  // empty, mark
  void end_dict() { bytes_ += 'u'; }     // set items
  void begin_list() { bytes_ += "]("; }
  /// Call before each element of a list, so that a long list is written in parts. The viewer cannot
  /// take all elements at once.
  void next_of_list(std::size_t index) {
    if (index != 0 && index % kPart == 0) bytes_ += "e(";
  }
  void end_list() { bytes_ += 'e'; }
  /// Makes a tuple of the last two values.
  void end_pair() { bytes_ += '\x86'; }

  /// Memoizes the last value; `recall` puts it again.
  [[nodiscard]] std::uint32_t remember();
  void recall(std::uint32_t place);

  /// Returns the complete pickle. Do not put anything afterwards.
  [[nodiscard]] std::string finish() {
    bytes_ += '.';
    return std::move(bytes_);
  }

 private:
  static constexpr std::size_t kPart = 1000;
  void put_little_endian(std::uint64_t value, int bytes);

  std::string bytes_;
  std::uint32_t remembered_ = 0;
  std::unordered_map<std::string, std::uint32_t> texts_;
};

void Pickle::put_little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFFU);
}

void Pickle::put(std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  if (number >= 0 && number < 0x100) {
    bytes_ += 'K';
    put_little_endian(bits, 1);
  } else if (number >= 0 && number < 0x10000) {
    bytes_ += 'M';
    put_little_endian(bits, 2);
  } else if (number >= std::numeric_limits<std::int32_t>::min() &&
             number <= std::numeric_limits<std::int32_t>::max()) {
    bytes_ += 'J';
    put_little_endian(bits & 0xFFFFFFFFU, 4);
  } else {
    bytes_ += '\x8A';
    bytes_ += '\x08';
    put_little_endian(bits, 8);
  }
}

void Pickle::put(std::string_view text) {
  const auto [place, fresh] = texts_.try_emplace(std::string(text), 0);
  if (!fresh) return recall(place->second);
  bytes_ += 'X';
  put_little_endian(text.size(), 4);
  bytes_ += text;
  place->second = remember();
}

std::uint32_t Pickle::remember() {
  const std::uint32_t place = remembered_++;
  const bool small = place < 0x100;
  bytes_ += small ? 'q' : 'r';
  put_little_endian(place, small ? 1 : 4);
  return place;
}

void Pickle::recall(std::uint32_t place) {
  const bool small = place < 0x100;
  bytes_ += small ? 'h' : 'j';
  put_little_endian(place, small ? 1 : 4);
}

/// A pool as a device of the viewer.
struct Device {
  const Process* process = nullptr;
  History history;
};

std::int64_t number(std::uint64_t value) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, 1ULL << 62U));
}

class SnapshotWriter {
 public:
  std::string write(const Timeline& timeline) {
    find_devices(timeline);
    pickle_.begin_dict();
    pickle_.put("segments");
    pickle_.begin_list();
    std::size_t index = 0;
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      for (const auto& [address, segment] : devices_[device].history.segments) {
        pickle_.next_of_list(index++);
        put_segment(device, address, segment);
      }
    }
    pickle_.end_list();
    pickle_.put("device_traces");
    pickle_.begin_list();
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      pickle_.next_of_list(device);
      put_trace(devices_[device]);
    }
    pickle_.end_list();
    pickle_.end_dict();
    return pickle_.finish();
  }

 private:
  void find_devices(const Timeline& timeline) {
    for (const Process& process : timeline.processes) {
      std::map<std::uint32_t, std::string> batches;
      std::set<std::uint16_t> pools;
      for (const TimelineRecord& record : process.records) {
        const bool of_pool = record.kind <= TimelineKind::kPoolEnd && record.source != 0;
        if (of_pool) pools.insert(record.source);
        if (record.kind == TimelineKind::kAdmit) {
          batches.try_emplace(record.batch, process.name(record.name));
        }
      }
      for (const std::uint16_t pool : pools) {
        devices_.push_back({.process = &process, .history = make_history(process, pool)});
      }
      batches_[&process] = std::move(batches);
    }
  }

  void item(std::string_view key, std::string_view value) {
    pickle_.put(key);
    pickle_.put(value);
  }
  void item(std::string_view key, std::int64_t value) {
    pickle_.put(key);
    pickle_.put(value);
  }
  void item(std::string_view key, std::uint64_t value) { item(key, number(value)); }

  void put_frame(std::string_view name, std::string_view file, std::int64_t line) {
    pickle_.begin_dict();
    item("name", name);
    item("filename", file);
    item("line", line);
    pickle_.end_dict();
  }

  /// Puts a record's call site and batch. Equal ones are written once.
  void put_frames(const Process& process, const TimelineRecord& record) {
    pickle_.put("frames");
    const auto key = std::make_tuple(&process, record.name, record.site, record.batch);
    if (const auto known = frames_.find(key); known != frames_.end()) {
      pickle_.recall(known->second);
      return;
    }
    pickle_.begin_list();
    if (record.name != 0 || record.site != 0) {
      const std::string site = shown_text(process.name(record.site));
      const auto [file, line] = split_site(site);
      put_frame(shown_text(process.name(record.name)), file, std::int64_t{line});
    }
    if (record.batch != 0) {
      std::string batch = "batch " + std::to_string(record.batch);
      const auto& batches = batches_[&process];
      const auto kind = batches.find(record.batch);
      if (kind != batches.end() && !kind->second.empty()) {
        batch += " (" + shown_text(kind->second) + ")";
      }
      put_frame(batch, "", 0);
    }
    pickle_.end_list();
    frames_[key] = pickle_.remember();
  }

  void put_block(const Process& process, std::uint64_t address, const Stretch* block,
                 std::uint64_t bytes) {
    pickle_.begin_dict();
    item("address", address);
    item("size", bytes);
    item("requested_size", block == nullptr ? 0 : block->requested);
    item("state", block == nullptr ? "inactive" : "active_allocated");
    put_frames(process, block == nullptr ? TimelineRecord{} : block->record);
    pickle_.end_dict();
  }

  /// The segment's blocks and the free memory between them add up to its size.
  void put_segment(std::size_t device, std::uint64_t address, const Stretch& segment) {
    const Process& process = *devices_[device].process;
    const Stretches& blocks = devices_[device].history.blocks;
    const std::uint64_t end = address + segment.bytes;
    std::uint64_t allocated = 0, requested = 0;
    const auto first = blocks.lower_bound(address);
    for (auto block = first; block != blocks.end() && block->first < end; ++block) {
      allocated += block->second.bytes;
      requested += block->second.requested;
    }
    pickle_.begin_dict();
    item("device", number(device));
    item("address", address);
    item("total_size", segment.bytes);
    item("allocated_size", allocated);
    item("active_size", allocated);
    item("requested_size", requested);
    item("stream", segment.record.stream);
    item("segment_type", "large");
    pickle_.put("segment_pool_id");
    pickle_.put(std::int64_t{0});
    pickle_.put(std::int64_t{0});
    pickle_.end_pair();
    pickle_.put("is_expandable");
    pickle_.put_false();
    put_frames(process, segment.record);
    pickle_.put("blocks");
    pickle_.begin_list();
    std::size_t index = 0;
    std::uint64_t at = address;
    const auto put_next = [&](const Stretch* block, std::uint64_t bytes) {
      pickle_.next_of_list(index++);
      put_block(process, at, block, bytes);
      at += bytes;
    };
    for (auto block = first; block != blocks.end() && block->first < end; ++block) {
      if (block->first > at) put_next(nullptr, block->first - at);
      put_next(&block->second, block->second.bytes);
    }
    if (at < end) put_next(nullptr, end - at);
    pickle_.end_list();
    pickle_.end_dict();
  }

  void put_entry(const Process& process, const HistoryEntry& entry, std::string_view action) {
    pickle_.begin_dict();
    item("action", action);
    if (entry.action == HistoryEntry::Action::kOutOfMemory) {
      item("device_free", entry.device_free);
    } else {
      item("addr", entry.address);
    }
    item("size", entry.bytes);
    item("stream", entry.record.stream);
    item("time_us", process.info.unix_ns / 1000 + entry.record.begin / 1000);
    put_frames(process, entry.record);
    pickle_.end_dict();
  }

  void put_trace(const Device& device) {
    pickle_.begin_list();
    std::size_t index = 0;
    const auto put_next = [&](const HistoryEntry& entry, std::string_view action) {
      pickle_.next_of_list(index++);
      put_entry(*device.process, entry, action);
    };
    for (const HistoryEntry& entry : device.history.entries) {
      switch (entry.action) {
        case HistoryEntry::Action::kAllocate:
          put_next(entry, "alloc");
          break;
        case HistoryEntry::Action::kFree:
          // Both entries in order, or the viewer draws the block for ever.
          put_next(entry, "free_requested");
          put_next(entry, "free_completed");
          break;
        case HistoryEntry::Action::kReserve:
          put_next(entry, "segment_alloc");
          break;
        case HistoryEntry::Action::kRelease:
          put_next(entry, "segment_free");
          break;
        case HistoryEntry::Action::kOutOfMemory:
          put_next(entry, "oom");
          break;
      }
    }
    pickle_.end_list();
  }

  Pickle pickle_;
  std::vector<Device> devices_;
  std::unordered_map<const Process*, std::map<std::uint32_t, std::string>> batches_;
  std::map<std::tuple<const Process*, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t>
      frames_;
};

}  // namespace

std::string to_snapshot(const Timeline& timeline) { return SnapshotWriter().write(timeline); }

bool is_pickle(std::string_view front) { return front.starts_with('\x80'); }

}  // namespace weir::timeline
