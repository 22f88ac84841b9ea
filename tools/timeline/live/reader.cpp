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
#include <set>
#include <string_view>
#include <utility>

#include "tools/timeline/live/block_file.hpp"
#include "tools/timeline/live/claims.hpp"
#include "tools/timeline/live/folder.hpp"

namespace weir::timeline {
namespace {

constexpr int kMostEntries = 4096;

/// A file that may be a block.
struct Candidate {
  OpenFolder file;  // closes its descriptor
  dev_t device = 0;
  ino_t inode = 0;
  std::uint32_t uid = 0;
  std::uint32_t mode = 0;
  std::uint64_t names = 0;
  std::uint64_t size = 0;
};

bool is_block_name(std::string_view name) {
  if (!name.ends_with(kBlockSuffix)) return false;
  name.remove_suffix(kBlockSuffix.size());
  return !name.empty() && name.find_first_not_of("0123456789-") == std::string_view::npos;
}

/// The names of blocks in a folder.
struct Names {
  std::vector<std::string> names{};
  bool are_all = true;  ///< false: the folder has more entries than the limit
};
Names names_in(const OpenFolder& folder) {
  Names found;
  const int own = fcntl(folder.descriptor(), F_DUPFD_CLOEXEC, 0);
  if (own < 0) return found;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(own), closedir);
  if (entries == nullptr) {
    close(own);
    return found;
  }
  for (int i = 0; i < kMostEntries; ++i) {
    const dirent* const entry = readdir(entries.get());
    if (entry == nullptr) return found;
    if (is_block_name(entry->d_name)) found.names.emplace_back(entry->d_name);
  }
  found.are_all = readdir(entries.get()) == nullptr;
  return found;
}

/// Opens a file that may be a block. Returns nothing if it is gone, or sets `fault` to the reason.
std::optional<Candidate> open_candidate(const OpenFolder& folder, const std::string& name,
                                        const char*& fault) {
  struct stat folder_found {};
  struct stat found {};
  if (fstat(folder.descriptor(), &folder_found) != 0) return std::nullopt;
  OpenFolder file(openat(folder.descriptor(), name.c_str(),
                         O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.is_open() && errno != ENOENT) {
    fault = errno == ELOOP ? "is a link" : "cannot be opened";
  }
  if (!file.is_open() || fstat(file.descriptor(), &found) != 0) return std::nullopt;
  if (!S_ISREG(found.st_mode)) {
    fault = "is no file";
  } else if (found.st_uid != folder_found.st_uid) {
    fault = "does not belong to the folder's owner";
  }
  if (fault != nullptr) return std::nullopt;
  return Candidate{.file = std::move(file),
                   .device = found.st_dev,
                   .inode = found.st_ino,
                   .uid = found.st_uid,
                   .mode = found.st_mode & 07777U,
                   .names = found.st_nlink,
                   .size = static_cast<std::uint64_t>(found.st_size)};
}

/// Reads up to `size` bytes from `offset`. Returns how many it read.
std::size_t read_at(const Candidate& candidate, void* place, std::size_t size, std::size_t offset) {
  const ssize_t read = pread(candidate.file.descriptor(), place, size, static_cast<off_t>(offset));
  return read < 0 ? 0 : static_cast<std::size_t>(read);
}

bool has_magic(const Candidate& candidate) {
  decltype(LiveBlock::magic) magic{};
  return read_at(candidate, magic.data(), magic.size(), 0) == magic.size() && magic == kLiveMagic;
}

BlockKind copy_of(const Candidate& candidate, BlockCopy& copy) {
  const auto read_count = [&candidate](std::uint64_t& count) {
    return read_at(candidate, &count, sizeof count, offsetof(LiveBlock, count)) == sizeof count;
  };
  const bool counted = read_count(copy.count_before);
  const std::size_t read = read_at(candidate, &copy.block, sizeof copy.block, 0);
  const BlockKind kind = kind_of(copy.block, read, candidate.size);
  if (kind != BlockKind::kBlock) return kind;
  return counted && read_count(copy.count_after) ? kind : BlockKind::kCut;
}

/// Returns whether the block is of the process that it names. Trusts a block of another pid
/// namespace, because its numbers mean nothing here.
bool is_of_running_process(const LiveProgram& program) {
  if (program.pid_namespace != pid_namespace()) return true;
  return find_process(program.pid) == ProcessState{program.started, program.uid};
}

/// Returns whether the process in the file's name holds its lock.
LockHolder holder_of(const Candidate& candidate, const std::string& name, LockList& locks) {
  const auto holder = locks.holder_of(candidate.device, candidate.inode);
  if (!holder) return LockHolder::kUnseen;
  const auto number = own_number(*holder);
  return number && is_name_of(name, *number) ? LockHolder::kNamed : LockHolder::kAnother;
}

/// The folders seen so far, since one may have two paths, and the programs whose files are valid on
/// their own.
struct Found {
  std::set<std::pair<dev_t, ino_t>> folders;
  std::vector<LiveProgram> programs;
  std::vector<Claim> claims;  ///< one per program
};

/// Adds a program to `found`. Returns null, or the reason why its block is not trusted.
const char* add_program(LiveProgram program, LockHolder holder, Found& found) {
  if (!is_of_running_process(program)) return "names a process that did not create it";
  if (!is_name_of(program.file, program.pid)) return "has the name of another process's file";
  if (!has_possible_figures(program)) return "has impossible figures";
  found.claims.push_back({.pid = program.pid,
                          .started = program.started,
                          .pid_namespace = program.pid_namespace,
                          .holder = holder});
  found.programs.push_back(std::move(program));
  return nullptr;
}

/// Returns a fault that does not depend on the figures; null if there is none.
const char* fault_of(BlockKind kind, LockHolder holder) {
  if (kind == BlockKind::kNone) return "is no block";
  if (kind == BlockKind::kCut) return "is shorter or longer than when it was created";
  const bool is_others = holder == LockHolder::kAnother;
  return is_others ? "is locked by a process that it is not named after" : nullptr;
}

/// Reads one file. Returns null, or the reason why it is not trusted.
const char* read_file(const LiveFolder& place, const OpenFolder& folder, const std::string& name,
                      LockList& locks, Found& found, LiveSurvey& survey) {
  const char* fault = nullptr;
  const auto candidate = open_candidate(folder, name, fault);
  if (!candidate || !is_locked_block(candidate->file.descriptor())) return fault;
  if (candidate->mode != 0600U) return "is accessible to other users";
  if (candidate->names > 1) return "has a second name";
  const auto copy = std::make_unique<BlockCopy>();
  const BlockKind kind = copy_of(*candidate, *copy);
  const LockHolder holder = holder_of(*candidate, name, locks);
  fault = fault_of(kind, holder);
  if (fault == nullptr && kind == BlockKind::kOtherVersion) {
    ++survey.unreadable;
    return nullptr;
  }
  if (fault == nullptr) {
    LiveProgram program = program_of(*copy, candidate->uid);
    program.folder = place;
    program.file = name;
    program.inode = candidate->inode;
    fault = add_program(std::move(program), holder, found);
  }
  // A block of a process that ended meanwhile is no fault.
  return fault != nullptr && is_locked_block(candidate->file.descriptor()) ? fault : nullptr;
}

void read_folder(const LiveFolder& place, Found& so_far, LiveSurvey& survey) {
  const OpenFolder folder = open_to_read(place);
  struct stat found {};
  if (!folder.is_open() || fstat(folder.descriptor(), &found) != 0) return;
  if (!so_far.folders.emplace(found.st_dev, found.st_ino).second) return;
  if (geteuid() != 0 && found.st_uid != geteuid()) {
    survey.faults.push_back({place.path, "is another user's folder"});
    return;
  }
  const Names entries = names_in(folder);
  if (!entries.are_all) {
    survey.faults.push_back({place.path, "has more than 4096 entries: only 4096 were read"});
  }
  LockList locks;  // read after the names, since a file has its lock before its name
  for (const std::string& name : entries.names) {
    const char* const fault = read_file(place, folder, name, locks, so_far, survey);
    if (fault != nullptr) survey.faults.push_back({place.path + "/" + name, fault});
  }
}

/// Moves the trusted programs into the survey.
void settle(Found found, LiveSurvey& survey) {
  const std::vector<bool> is_believed = believed(found.claims);
  for (std::size_t i = 0; i < found.programs.size(); ++i) {
    LiveProgram& program = found.programs[i];
    if (is_believed[i]) {
      survey.programs.push_back(std::move(program));
    } else {
      survey.faults.push_back(
          {program.folder.path + "/" + program.file, "names the same process as another file"});
    }
  }
}

}  // namespace

bool is_locked_block(int descriptor) noexcept {
  return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

LiveSurvey read_live(std::span<const LiveFolder> folders) {
  LiveSurvey survey;
  Found found;
  for (const LiveFolder& folder : folders) read_folder(folder, found, survey);
  settle(std::move(found), survey);
  std::ranges::stable_sort(survey.programs, {}, &LiveProgram::pid);
  return survey;
}

void remove_ended(const LiveFolder& place) noexcept {
  try {
    const OpenFolder folder = open_to_read(place);
    if (!folder.is_open()) return;
    for (const std::string& name : names_in(folder).names) {
      const char* fault = nullptr;
      const auto candidate = open_candidate(folder, name, fault);
      if (!candidate || candidate->uid != geteuid()) continue;
      if (is_locked_block(candidate->file.descriptor()) || !has_magic(*candidate)) continue;
      unlinkat(folder.descriptor(), name.c_str(), 0);
    }
  } catch (const std::bad_alloc&) {
    return;  // the next reader removes them
  }
}

namespace {

using Samples = std::span<const LiveSample>;
using Counter = std::uint64_t LiveSample::*;

/// Returns the last samples with ascending times, none older than `window`. `samples` must not be
/// empty.
Samples within(Samples samples, std::chrono::nanoseconds window) {
  const auto longest = static_cast<std::uint64_t>(window.count());
  const std::uint64_t last = samples.back().time_ns;
  std::size_t at = samples.size() - 1;
  while (at > 0 && samples[at - 1].time_ns < samples[at].time_ns &&
         last - samples[at - 1].time_ns <= longest) {
    --at;
  }
  return samples.subspan(at);
}

/// Returns the growth of `counter` per `unit` nanoseconds since it last went back: its earlier
/// counts belong to a pool, scheduler or device that ended.
std::optional<double> growth(Samples samples, Counter counter, double unit) {
  if (samples.empty()) return std::nullopt;
  std::size_t at = samples.size() - 1;
  while (at > 0 && samples[at - 1].*counter <= samples[at].*counter) --at;
  const LiveSample& first = samples[at];
  const LiveSample& last = samples.back();
  if (first.time_ns == last.time_ns) return std::nullopt;
  const auto time = static_cast<double>(last.time_ns - first.time_ns);
  return static_cast<double>(last.*counter - first.*counter) * unit / time;
}

/// Starts where the device first reports its busy time; the first samples may be older.
std::optional<double> idle_share(Samples samples) {
  std::size_t at = samples.size();
  while (at > 0 && samples[at - 1].knows_busy != 0) --at;
  const auto busy = growth(samples.subspan(at), &LiveSample::busy_ns, 1);
  if (!busy) return std::nullopt;
  return std::clamp(1.0 - *busy, 0.0, 1.0);
}

}  // namespace

LiveRates rates_of(std::span<const LiveSample> samples, std::chrono::nanoseconds window) {
  if (samples.empty()) return {};
  constexpr double kSecond = 1e9;
  const Samples recent = within(samples, window);
  return {.batches = growth(recent, &LiveSample::settled, kSecond),
          .stalls = growth(recent, &LiveSample::stalls, kSecond),
          .stalled = growth(recent, &LiveSample::stalled_ns, 1),
          .idle = idle_share(recent)};
}

}  // namespace weir::timeline
