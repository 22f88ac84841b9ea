#include "tools/timeline/model/tracks.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>

#include "allocator/base/utf8.hpp"

namespace weir::timeline {
namespace {

/// The number of slices remembered per lane, so that late ones can fill the right gap.
constexpr std::size_t kRemembered = 64;

}  // namespace

std::optional<Track> track_of(std::uint32_t process, const TimelineRecord& record) {
  Track track{.process = process};
  switch (record.kind) {
    case TimelineKind::kAdmit:
    case TimelineKind::kClose:
    case TimelineKind::kSettle:
    case TimelineKind::kStream:
    case TimelineKind::kThread:
      return std::nullopt;
    case TimelineKind::kExecute:
    case TimelineKind::kStreamWait:
      track.kind = TrackKind::kStream;
      track.number = record.stream;
      return track;
    case TimelineKind::kKernel:
    case TimelineKind::kCopy:
    case TimelineKind::kSet:
      track.kind = TrackKind::kDevice;
      track.device = record.device;
      track.number = record.stream;
      return track;
    case TimelineKind::kOverhead:
      track.kind = TrackKind::kOverhead;
      return track;
    default:
      if (record.thread != 0) {
        track.kind = TrackKind::kThread;
        track.number = record.thread;
      }
      return track;
  }
}

std::string track_name(const Track& track, std::string_view given) {
  std::string name(given);
  if (name.empty()) {
    switch (track.kind) {
      case TrackKind::kThread:
        name = "thread " + std::to_string(track.number);
        break;
      case TrackKind::kStream:
        name = "stream " + std::to_string(track.number);
        break;
      case TrackKind::kDevice:
        if (track.device != 0) name = "GPU " + std::to_string(track.device - 1) + " ";
        name += "stream " + std::to_string(track.number);
        break;
      case TrackKind::kOverhead:
        name = "profiler";
        break;
      case TrackKind::kProcess:
        name = "process";
        break;
    }
  }
  if (track.lane != 0) name += " (" + std::to_string(track.lane + 1) + ")";
  return name;
}

bool Lanes::fits(const Lane& lane, Span span) const noexcept {
  if (!lane.any || span.begin >= lane.latest) return true;
  if (span.begin < lane.forgotten) return false;
  for (const Span& other : lane.spans) {
    // A late slice must not touch its successor. At equal times a reader processes begins and ends
    // in file order, and would end the wrong slice.
    if (other.end <= span.begin || span.end < other.begin) continue;
    if (rule_ == Rule::kApart) return false;
    // Of two slices that begin together, a reader takes the first as the outer one.
    const bool inside = other.begin <= span.begin && span.end <= other.end;
    const bool around = span.begin < other.begin && other.end <= span.end;
    if (!inside && !around) return false;
  }
  return true;
}

void Lanes::add(Lane& lane, Span span) {
  if (lane.spans.size() == kRemembered) {
    // Forgets the half that ended first: new slices must begin after it.
    auto middle = lane.spans.begin() + kRemembered / 2;
    std::nth_element(lane.spans.begin(), middle, lane.spans.end(),
                     [](const Span& a, const Span& b) { return a.end < b.end; });
    for (auto old = lane.spans.begin(); old != middle; ++old) {
      lane.forgotten = std::max(lane.forgotten, old->end);
    }
    lane.spans.erase(lane.spans.begin(), middle);
  }
  lane.spans.push_back(span);
  lane.latest = std::max(lane.latest, span.end);
  lane.any = true;
}

std::optional<std::uint32_t> Lanes::place(std::uint64_t begin, std::uint64_t end) {
  const Span span{begin, std::max(begin, end)};
  for (std::uint32_t number = 0; number < lanes_.size(); ++number) {
    if (!fits(lanes_[number], span)) continue;
    add(lanes_[number], span);
    return number;
  }
  if (lanes_.size() == kMost) return std::nullopt;
  add(lanes_.emplace_back(), span);
  return static_cast<std::uint32_t>(lanes_.size() - 1);
}

std::size_t Tracks::Hash::operator()(const Track& track) const noexcept {
  const std::uint64_t mixed =
      track.number * 0x9E3779B97F4A7C15ULL ^ (std::uint64_t{track.process} << 24U) ^
      (std::uint64_t{track.device} << 8U) ^ static_cast<std::uint64_t>(track.kind);
  return static_cast<std::size_t>(mixed ^ (mixed >> 32U));
}

Tracks::Group& Tracks::group(const Track& first) {
  if (last_group_ != nullptr && first == last_) return *last_group_;
  const bool nest = first.kind == TrackKind::kThread || first.kind == TrackKind::kProcess;
  const auto [place, fresh] =
      groups_.try_emplace(first, nest ? Lanes::Rule::kNest : Lanes::Rule::kApart);
  last_ = first;
  last_group_ = &place->second;
  return place->second;
}

std::optional<Tracks::Place> Tracks::place(const TimelineRecord& record) {
  const std::optional<Track> first = track_of(process_, record);
  if (!first) return std::nullopt;
  Group& of = group(*first);
  Place place;
  std::uint32_t lane = 0;
  if (is_slice(record.kind)) {
    const std::optional<std::uint32_t> free = of.lanes.place(record.begin, record.end);
    place.instant = !free;
    lane = free.value_or(0);
  }
  if (of.numbers.size() <= lane) of.numbers.resize(lane + 1, 0);
  if (of.numbers[lane] == 0) {
    Track track = *first;
    track.lane = lane;
    tracks_.push_back(track);
    of.numbers[lane] = size();
    place.fresh = true;
  }
  place.track = of.numbers[lane];
  return place;
}

std::vector<std::uint32_t> Tracks::rename(const TimelineRecord& record, std::string_view name) {
  Track first{.process = process_};
  if (record.kind == TimelineKind::kThread) {
    first.kind = TrackKind::kThread;
    first.number = record.thread;
  } else if (record.kind == TimelineKind::kStream) {
    first.kind = TrackKind::kStream;
    first.number = record.stream;
  } else {
    return {};
  }
  Group& of = group(first);
  if (of.given == name) return {};
  of.given = name;
  std::vector<std::uint32_t> there;
  for (const std::uint32_t number : of.numbers) {
    if (number != 0) there.push_back(number);
  }
  return there;
}

std::string Tracks::name(std::uint32_t number) const {
  Track first = track(number);
  first.lane = 0;
  const auto of = groups_.find(first);
  return track_name(track(number), of == groups_.end() ? std::string_view() : of->second.given);
}

namespace {

constexpr std::size_t kMostShown = 4096;

}  // namespace

std::string shown_text(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    if (shown.size() >= kMostShown) return shown += "...";
    const Character character = first_character(text);
    if (!character.valid) {
      shown += kNoCharacter;
    } else {
      shown += character.is_shown() ? text.substr(0, character.bytes) : " ";
    }
    text.remove_prefix(character.bytes);
  }
  return shown;
}

SiteParts split_site(std::string_view site) noexcept {
  const std::size_t colon = site.rfind(':');
  if (colon == std::string_view::npos) return {site};
  const char* const end = site.data() + site.size();
  std::uint32_t line = 0;
  const auto [rest, error] = std::from_chars(site.data() + colon + 1, end, line);
  if (rest != end || error != std::errc()) return {site};
  return {site.substr(0, colon), line};
}

}  // namespace weir::timeline
