#include "tools/timeline/live/reader.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "tools/timeline/live/block_file.hpp"
#include "tools/timeline/live/process.hpp"

namespace weir::timeline {
namespace {

constexpr int kMostEntries = 4096;

/// A file of a folder that may be a block.
struct Candidate {
  OpenFolder file;  // it closes its descriptor
  std::uint32_t uid = 0;
};

bool is_block_name(std::string_view name) {
  if (!name.ends_with(kBlockSuffix)) return false;
  name.remove_suffix(kBlockSuffix.size());
  return !name.empty() && name.find_first_not_of("0123456789-") == std::string_view::npos;
}

/// Names of blocks in the folder.
std::vector<std::string> names_in(const OpenFolder& folder) {
  std::vector<std::string> names;
  const int own = fcntl(folder.descriptor(), F_DUPFD_CLOEXEC, 0);
  if (own < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(own), closedir);
  if (entries == nullptr) {
    close(own);
    return names;
  }
  for (int i = 0; i < kMostEntries; ++i) {
    const dirent* const entry = readdir(entries.get());
    if (entry == nullptr) break;
    if (is_block_name(entry->d_name)) names.emplace_back(entry->d_name);
  }
  return names;
}

/// Nothing for what is no regular file, or not of the folder's owner.
std::optional<Candidate> open_candidate(const OpenFolder& folder, const std::string& name) {
  OpenFolder file(openat(folder.descriptor(), name.c_str(),
                         O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat folder_found {};
  struct stat found {};
  if (!file.is_open() || fstat(file.descriptor(), &found) != 0) return std::nullopt;
  if (fstat(folder.descriptor(), &folder_found) != 0) return std::nullopt;
  if (!S_ISREG(found.st_mode) || found.st_uid != folder_found.st_uid) return std::nullopt;
  return Candidate{std::move(file), found.st_uid};
}

/// Whether a process has it mapped.
bool is_locked(const Candidate& candidate) {
  return flock(candidate.file.descriptor(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/// Up to `size` bytes from `offset`; whether all of them were there.
bool read_at(const Candidate& candidate, void* place, std::size_t size, std::size_t offset) {
  return pread(candidate.file.descriptor(), place, size, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(size);
}

bool has_magic(const Candidate& candidate) {
  decltype(LiveBlock::magic) magic{};
  return read_at(candidate, magic.data(), magic.size(), 0) && magic == kLiveMagic;
}

/// The block, and `count` before and after it was read.
struct Copy {
  LiveBlock block;
  std::uint64_t count_before = 0;
  std::uint64_t count_after = 0;
};

/// Nothing where it is too short, or of another version.
std::unique_ptr<Copy> copy_of(const Candidate& candidate) {
  auto copy = std::make_unique<Copy>();
  const auto read_count = [&candidate](std::uint64_t& count) {
    return read_at(candidate, &count, sizeof count, offsetof(LiveBlock, count));
  };
  if (!read_count(copy->count_before)) return nullptr;
  if (!read_at(candidate, &copy->block, sizeof(LiveBlock), 0)) return nullptr;
  if (!read_count(copy->count_after)) return nullptr;
  const bool known = copy->block.version == kLiveVersion && copy->block.size == sizeof(LiveBlock);
  return known ? std::move(copy) : nullptr;
}

template <std::size_t Size>
std::string text_of(const std::array<char, Size>& place) {
  return {place.begin(), std::ranges::find(place, '\0')};
}

/// Those that were not written while they were read; see block.hpp.
std::vector<LiveSample> samples_of(const Copy& copy) {
  std::vector<LiveSample> samples;
  const std::uint64_t count = copy.count_before;
  const std::uint64_t after = copy.count_after;
  if (after < count || after - count >= kLiveSamples) return samples;
  const std::uint64_t first = after < kLiveHistory ? 0 : after - kLiveHistory;
  for (std::uint64_t i = first; i < count; ++i) {
    const LiveSample& sample = copy.block.samples[i % kLiveSamples];
    if (samples.empty() || sample.time_ns > samples.back().time_ns) samples.push_back(sample);
  }
  return samples;
}

/// A block of another pid namespace is believed: its numbers mean nothing here.
bool is_of_running_process(const LiveBlock& block, std::uint32_t uid) {
  if (block.pid_namespace != pid_namespace()) return true;
  return find_process(block.pid) == ProcessState{block.started, uid};
}

LiveProgram program_of(const Copy& copy, std::uint32_t uid) {
  const LiveBlock& block = copy.block;
  LiveProgram program{.pid = block.pid,
                      .uid = uid,
                      .started = block.started,
                      .program = text_of(block.program),
                      .devices = {},
                      .samples = samples_of(copy)};
  const std::size_t devices = std::min<std::size_t>(block.device_count, kLiveDevices);
  for (std::size_t i = 0; i < devices; ++i) program.devices.push_back(text_of(block.devices[i]));
  return program;
}

void read_folder(const LiveFolder& place, LiveSurvey& survey) {
  const OpenFolder folder = open_to_read(place);
  if (!folder.is_open()) return;
  for (const std::string& name : names_in(folder)) {
    const auto candidate = open_candidate(folder, name);
    if (!candidate || !is_locked(*candidate) || !has_magic(*candidate)) continue;
    const std::unique_ptr<Copy> copy = copy_of(*candidate);
    if (copy == nullptr) {
      ++survey.unreadable;
    } else if (is_of_running_process(copy->block, candidate->uid)) {
      survey.programs.push_back(program_of(*copy, candidate->uid));
    }
  }
}

}  // namespace

LiveSurvey read_live(std::span<const LiveFolder> folders) {
  LiveSurvey survey;
  for (const LiveFolder& folder : folders) read_folder(folder, survey);
  std::ranges::stable_sort(survey.programs, {}, &LiveProgram::pid);
  return survey;
}

void remove_ended(const LiveFolder& place) noexcept {
  try {
    const OpenFolder folder = open_to_read(place);
    if (!folder.is_open()) return;
    for (const std::string& name : names_in(folder)) {
      const auto candidate = open_candidate(folder, name);
      if (!candidate || candidate->uid != geteuid()) continue;
      if (is_locked(*candidate) || !has_magic(*candidate)) continue;
      unlinkat(folder.descriptor(), name.c_str(), 0);
    }
  } catch (const std::bad_alloc&) {
    return;  // the next one that looks removes them
  }
}

}  // namespace weir::timeline
