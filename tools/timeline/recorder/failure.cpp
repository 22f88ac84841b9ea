#include "tools/timeline/recorder/failure.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include "tools/timeline/files/formats.hpp"

namespace weir::timeline {
namespace {

/// Perfetto's format is the smallest, whatever the recording has.
constexpr std::string_view kSuffix = ".pftrace";

class StringSink final : public ByteSink {
 public:
  void append(std::string_view bytes) noexcept override {
    try {
      if (is_whole) text += bytes;
    } catch (const std::exception&) {
      is_whole = false;
    }
  }
  std::string text;
  bool is_whole = true;
};

/// Returns `path` as a word of a shell's command line.
std::string shell_word(const std::string& path) {
  std::string word = "'";
  for (const char each : path) word += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return word + "'";
}

/// The key of a block while it is allocated.
using BlockKey = std::pair<std::uint16_t, std::uint64_t>;
using Blocks = std::map<BlockKey, TimelineRecord>;

BlockKey key_of(const TimelineRecord& record) noexcept { return {record.source, record.id}; }

/// Undoes the events, from the last to the first.
void undo(const std::vector<TimelineRecord>& recent, Blocks& blocks) {
  std::for_each(recent.rbegin(), recent.rend(), [&](const TimelineRecord& record) {
    if (record.kind == TimelineKind::kAllocate) {
      blocks.erase(key_of(record));
    } else if (record.kind == TimelineKind::kFree) {
      TimelineRecord& block = blocks[key_of(record)];
      block = record;
      block.kind = TimelineKind::kLive;
      block.detail = 0;
      block.batch = 0;
    }
  });
}

bool is_of_a_block(TimelineKind kind) noexcept {
  return kind == TimelineKind::kLive || kind == TimelineKind::kAllocate ||
         kind == TimelineKind::kFree;
}

/// Returns whether a batch begins within the window.
bool begins_in(const std::vector<TimelineRecord>& recent, const TimelineRecord& state) {
  return std::ranges::any_of(recent, [&](const TimelineRecord& record) {
    return record.kind == state.kind && record.source == state.source &&
           record.batch == state.batch && record.stream == state.stream &&
           record.thread == state.thread;
  });
}

/// Sets the counts of each pool at the window's begin, from its first record in the window.
void set_statistics(const std::vector<TimelineRecord>& recent,
                    std::vector<TimelineRecord>& states) {
  std::unordered_map<std::uint16_t, const TimelineRecord*> first;
  for (const TimelineRecord& record : recent) {
    if (record.kind <= TimelineKind::kPoolEnd) first.try_emplace(record.source, &record);
  }
  for (TimelineRecord& state : states) {
    const auto known = first.find(state.source);
    if (state.kind > TimelineKind::kPoolEnd || known == first.end()) continue;
    state.allocated = known->second->allocated;
    state.awaiting = known->second->awaiting;
    state.cached = known->second->cached;
  }
}

}  // namespace

std::vector<TimelineRecord> begin_with_live(const std::vector<TimelineRecord>& live,
                                            std::vector<TimelineRecord> recent) {
  const std::uint64_t first = !recent.empty() ? recent.front().begin
                              : !live.empty() ? live.front().begin
                                              : 0;
  Blocks blocks;
  std::vector<TimelineRecord> all;
  for (const TimelineRecord& state : live) {
    if (state.kind == TimelineKind::kLive) {
      blocks[key_of(state)] = state;
    } else if (!is_of_a_block(state.kind) && !begins_in(recent, state)) {
      all.push_back(state);
    }
  }
  // Live blocks reported by a recording that began within the window are already known.
  std::erase_if(recent, [](const auto& record) { return record.kind == TimelineKind::kLive; });
  undo(recent, blocks);
  for (const auto& [key, block] : blocks) all.push_back(block);
  for (TimelineRecord& record : all) {
    record.begin = record.end = first;
    record.sequence = 0;
  }
  set_statistics(recent, all);
  all.insert(all.end(), recent.begin(), recent.end());
  return all;
}

Process make_process(ProcessInfo info, std::vector<TimelineRecord> records, const Names& names) {
  Process process;
  process.info = std::move(info);
  process.complete = true;
  std::unordered_map<std::uint32_t, std::uint32_t> numbers{{0, 0}};
  const auto renumber = [&](std::uint32_t& number) {
    const auto [place, is_new] =
        numbers.try_emplace(number, static_cast<std::uint32_t>(process.names.size()));
    if (is_new) process.names.emplace_back(names.text(number));
    number = place->second;
  };
  for (TimelineRecord& record : records) {
    renumber(record.name);
    renumber(record.site);
  }
  process.records = std::move(records);
  return process;
}

std::string failure_file(const std::string& recording, std::size_t number) {
  const auto format = find_format(recording, FormatUse::kRecord);
  std::string path = recording.substr(0, recording.size() - (format ? format->suffix.size() : 0));
  path += ".oom";
  if (number > 1) path += "." + std::to_string(number);
  return path.append(kSuffix);
}

std::string failure_page(const std::string& file) {
  return file.substr(0, file.size() - kSuffix.size()) + ".html";
}

std::string failure_command(const std::string& file) {
  return "weir timeline report " + shell_word(file) + " -o " + shell_word(failure_page(file));
}

std::string bytes_of_failure(const Timeline& timeline) {
  StringSink sink;
  write_timeline(timeline, require_format("failure", kSuffix, FormatUse::kWrite), sink);
  if (!sink.is_whole) throw std::bad_alloc();
  return std::move(sink.text);
}

}  // namespace weir::timeline
