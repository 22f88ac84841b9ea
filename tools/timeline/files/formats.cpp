#include "tools/timeline/files/formats.hpp"

#include <array>
#include <cstddef>
#include <new>
#include <string_view>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/setting.hpp"
#include "allocator/log/allocation_log_reader.hpp"
#include "tools/timeline/chrome/chrome.hpp"
#include "tools/timeline/chrome/gzip.hpp"
#include "tools/timeline/perfetto/perfetto.hpp"
#include "tools/timeline/snapshot/writer.hpp"

namespace weir::timeline {
namespace {

constexpr std::array<std::string_view, 2> kChromeSuffixes{".json", ".json.gz"};
constexpr std::array<std::string_view, 1> kPerfettoSuffixes{".pftrace"};
constexpr std::array<std::string_view, 1> kSnapshotSuffixes{".pickle"};

constexpr std::array<FileFormat, 3> kFormats{{
    {.name = "Chrome trace JSON",
     .suffixes = kChromeSuffixes,
     .recognises = chrome::recognises,
     .recognises_ours = chrome::recognises_ours,
     .make_writer = make_chrome_writer,
     .whole = nullptr,
     .read = read_chrome,
     .why_not_read = {}},
    {.name = "Perfetto traces",
     .suffixes = kPerfettoSuffixes,
     .recognises = perfetto::recognises,
     .recognises_ours = perfetto::recognises_ours,
     .make_writer = make_perfetto_writer,
     .whole = nullptr,
     .read = read_perfetto,
     .why_not_read = {}},
    {.name = "pickles for PyTorch's memory viewer",
     .suffixes = kSnapshotSuffixes,
     .recognises = is_pickle,
     .recognises_ours = nullptr,
     .make_writer = nullptr,
     .whole = to_snapshot,
     .read = nullptr,
     .why_not_read = "it is a pickle, which only PyTorch's memory viewer reads"},
}};

std::string join(const std::vector<std::string>& items, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i != 0) text += i + 1 < items.size() ? ", " : " " + std::string(last) + " ";
    text += items[i];
  }
  return text;
}

}  // namespace

std::span<const FileFormat> file_formats() noexcept { return kFormats; }

bool allows(const FileFormat& format, FormatUse use) noexcept {
  switch (use) {
    case FormatUse::kRecord:
      return format.make_writer != nullptr;
    case FormatUse::kRead:
      return format.read != nullptr;
    case FormatUse::kWrite:
      break;
  }
  return true;
}

std::optional<NamedFormat> find_format(std::string_view path, FormatUse use) noexcept {
  for (const FileFormat& format : kFormats) {
    if (!allows(format, use)) continue;
    for (const std::string_view suffix : format.suffixes) {
      if (path.ends_with(suffix)) return NamedFormat{&format, suffix};
    }
  }
  return std::nullopt;
}

NamedFormat require_format(std::string_view option, std::string_view path, FormatUse use) {
  if (const auto found = find_format(path, use)) return *found;
  refuse(option, path, "a name that ends in " + list_suffixes(use));
}

std::string list_suffixes(FormatUse use) {
  std::vector<std::string> suffixes;
  for (const FileFormat& format : kFormats) {
    if (allows(format, use)) {
      suffixes.insert(suffixes.end(), format.suffixes.begin(), format.suffixes.end());
    }
  }
  return join(suffixes, "or");
}

std::string list_formats(FormatUse use, std::string_view last) {
  std::vector<std::string> formats;
  for (const FileFormat& format : kFormats) {
    if (!allows(format, use)) continue;
    std::string text(format.name);
    for (const std::string_view suffix : format.suffixes) {
      text.append(suffix == format.suffixes.front() ? " (" : ", ").append(suffix);
    }
    formats.push_back(text + ")");
  }
  return join(formats, last);
}

namespace {

/// Returns the first bytes, unpacked.
std::string front_of(const std::string& path) {
  constexpr std::size_t kFront = 256;
  chrome::Input input(path, {});
  std::string front;
  while (front.size() < kFront && !input.at_end()) front += input.Take();
  return front;
}

[[noreturn]] void refuse_content(const std::string& path, std::string_view what) {
  throw UsageError(path + ": no timeline: " + std::string(what) + "; allowed are " +
                   list_formats(FormatUse::kRead, "and"));
}

Timeline read(const std::string& path, const ReadLimits& limits) {
  const std::string front = front_of(path);
  if (front.empty()) refuse_content(path, "it is empty");
  if (is_allocation_log(front)) {
    refuse_content(path, "it is an allocation log, which weir replay reads");
  }
  for (const FileFormat& format : file_formats()) {
    if (!format.recognises(front)) continue;
    if (format.read == nullptr) refuse_content(path, format.why_not_read);
    return format.read(path, limits);
  }
  refuse_content(path, "its first bytes are of no known format");
}

}  // namespace

Timeline read_timeline(const std::string& path) { return read_timeline(path, {}); }

Timeline read_timeline(const std::string& path, const ReadLimits& limits) {
  if (path == "-") throw UsageError("-: a timeline is read from a file, not from standard input");
  try {
    return read(path, limits);
  } catch (const std::bad_alloc&) {
    throw UsageError(path + ": not enough memory to read it");
  }
}

namespace {

void write_unpacked(const Timeline& timeline, const FileFormat& format, ByteSink& sink) {
  if (format.whole != nullptr) {
    sink.append(format.whole(timeline));
  } else {
    write_timeline(timeline, *format.make_writer(sink));
  }
}

}  // namespace

void write_timeline(const Timeline& timeline, Writer& writer) {
  std::uint64_t lost = 0;
  for (const Process& process : timeline.processes) {
    writer.begin(process.info);
    writer.write(process.records, ProcessNames(process));
    writer.end_process(process.complete ? Writer::End::kComplete : Writer::End::kCut, process.lost);
    lost += process.lost;
  }
  writer.finish(lost);
}

void write_timeline(const Timeline& timeline, const NamedFormat& as, ByteSink& sink) {
  if (!as.packed()) {
    write_unpacked(timeline, *as.format, sink);
    return;
  }
  GzipSink packed(sink);
  write_unpacked(timeline, *as.format, packed);
  packed.finish();
}

}  // namespace weir::timeline
