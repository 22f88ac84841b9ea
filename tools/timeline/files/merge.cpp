#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "allocator/base/error.hpp"
#include "tools/timeline/files/formats.hpp"

namespace weir::timeline {
namespace {

constexpr std::uint64_t kYear = 365ULL * 24 * 3600 * 1'000'000'000;

std::string described(const ProcessInfo& info) {
  std::string text = info.program.empty() ? "a program" : info.program;
  if (info.rank) text += ", rank " + std::to_string(*info.rank);
  text += ", pid " + std::to_string(info.pid);
  if (!info.host.empty()) text += " on " + info.host;
  return text;
}

auto identity(const ProcessInfo& info) {
  return std::tuple(info.rank, info.host, info.pid, info.boot, info.monotonic_ns, info.unix_ns,
                    info.program);
}

void refuse_doubles(const std::vector<Process>& processes) {
  for (std::size_t i = 1; i < processes.size(); ++i) {
    const ProcessInfo& info = processes[i].info;
    if (identity(processes[i - 1].info) != identity(info)) continue;
    // Other programs' traces may lack these fields. Then only their records distinguish them.
    const bool says_when = info.monotonic_ns != 0 || info.unix_ns != 0;
    if (says_when || processes[i - 1].records == processes[i].records) {
      throw UsageError("the same recording appears twice: " + described(info));
    }
  }
}

/// Returns a recording's zero in nanoseconds since 1970; nothing if unknown. `machines` has each
/// machine's reference recording.
std::optional<std::uint64_t> zero_of(const ProcessInfo& info,
                                     const std::map<std::string, ProcessInfo>& machines) {
  if (info.boot.empty()) {
    if (info.unix_ns == 0) return std::nullopt;
    return info.unix_ns;
  }
  const ProcessInfo& first = machines.at(info.boot);
  std::uint64_t zero = 0;
  if (__builtin_add_overflow(first.unix_ns, info.monotonic_ns - first.monotonic_ns, &zero)) {
    throw UsageError(described(info) + ": its clock is out of range");
  }
  return zero;
}

std::map<std::string, ProcessInfo> machines_of(const std::vector<Process>& processes) {
  std::map<std::string, ProcessInfo> machines;
  for (const Process& process : processes) {
    if (process.info.boot.empty()) continue;
    const auto [place, fresh] = machines.try_emplace(process.info.boot, process.info);
    if (!fresh && process.info.monotonic_ns < place->second.monotonic_ns) {
      place->second = process.info;
    }
  }
  return machines;
}

std::uint64_t less(std::uint64_t from, std::uint64_t by) { return from - std::min(from, by); }

std::uint64_t later(std::uint64_t time, std::uint64_t by) {
  return time + std::min(by, std::numeric_limits<std::uint64_t>::max() - time);
}

/// Moves a process's zero back by `by` nanoseconds. If the machine was not up at the new zero, its
/// monotonic clock cannot express that time, so a later merge uses the time of day.
void shift(Process& process, std::uint64_t by) {
  if (by > process.info.monotonic_ns) process.info.boot.clear();
  process.info.monotonic_ns = less(process.info.monotonic_ns, by);
  process.info.unix_ns = less(process.info.unix_ns, by);
  for (TimelineRecord& record : process.records) {
    record.begin = later(record.begin, by);
    record.end = later(record.end, by);
  }
}

void note_unknown_clock(Process& process) {
  process.names.emplace_back("its clock is unknown: it is drawn as if it began first");
  process.records.insert(
      process.records.begin(),
      {.name = static_cast<std::uint32_t>(process.names.size() - 1), .kind = TimelineKind::kNote});
}

}  // namespace

Timeline merge(std::vector<Timeline> timelines) {
  Timeline merged;
  for (Timeline& timeline : timelines) {
    for (Process& process : timeline.processes) merged.processes.push_back(std::move(process));
    timeline.processes.clear();
  }
  std::vector<Process>& processes = merged.processes;
  std::stable_sort(processes.begin(), processes.end(), [](const Process& a, const Process& b) {
    return identity(a.info) < identity(b.info);
  });
  refuse_doubles(processes);

  const std::map<std::string, ProcessInfo> machines = machines_of(processes);
  std::optional<std::uint64_t> earliest;
  for (const Process& process : processes) {
    const auto zero = zero_of(process.info, machines);
    if (zero) earliest = std::min(*zero, earliest.value_or(*zero));
  }
  for (Process& process : processes) {
    const auto zero = zero_of(process.info, machines);
    if (!zero) {
      if (processes.size() > 1) note_unknown_clock(process);
      continue;
    }
    if (*zero - *earliest > kYear) {
      throw UsageError(described(process.info) + ": began more than a year after the first");
    }
    shift(process, *zero - *earliest);
    process.info.unix_ns = *earliest;
  }
  return merged;
}

}  // namespace weir::timeline
