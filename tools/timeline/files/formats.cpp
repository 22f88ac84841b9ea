#include "tools/timeline/files/formats.hpp"

#include <array>
#include <cstddef>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/timeline/chrome/reader.hpp"
#include "tools/timeline/chrome/recognise.hpp"
#include "tools/timeline/chrome/writer.hpp"
#include "tools/timeline/perfetto/reader.hpp"
#include "tools/timeline/perfetto/recognise.hpp"
#include "tools/timeline/perfetto/writer.hpp"
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

}  // namespace weir::timeline
