#pragma once

// Decides the track of a record, and its lane on that track. All writers of pictures share these
// rules, so that a run looks the same in every format.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "allocator/timeline/record.hpp"

namespace weir::timeline {

/// How records of a kind are drawn.
enum KindTrait : std::uint8_t {
  kSlice = 1,      ///< with a begin and an end of their own; all others are instants
  kOfProcess = 2,  ///< across the whole process
  kMoment = 4,     ///< instants of which there are few enough for any picture
};
struct KindInfo {
  std::string_view name;    ///< for people and for files
  std::uint8_t traits = 0;  ///< of KindTrait
};
/// In the order of TimelineKind.
inline constexpr std::array<KindInfo, kTimelineKinds> kKinds{{{"pool", kOfProcess},
                                                              {"live"},
                                                              {"allocate"},
                                                              {"free"},
                                                              {"settled"},
                                                              {"use"},
                                                              {"reserve", kMoment},
                                                              {"release", kMoment},
                                                              {"map"},
                                                              {"failure", kOfProcess | kMoment},
                                                              {"budget", kOfProcess | kMoment},
                                                              {"pressure", kOfProcess | kMoment},
                                                              {"pool_end", kOfProcess},
                                                              {"pool_wait", kSlice},
                                                              {"memory_wait", kSlice},
                                                              {"stall", kSlice},
                                                              {"barrier", kSlice},
                                                              {"pace", kSlice},
                                                              {"admit"},
                                                              {"close"},
                                                              {"settle"},
                                                              {"submit", kSlice},
                                                              {"execute", kSlice},
                                                              {"stream_wait", kSlice},
                                                              {"kernel", kSlice},
                                                              {"copy", kSlice},
                                                              {"set", kSlice},
                                                              {"sync", kSlice},
                                                              {"call", kSlice},
                                                              {"overhead", kSlice},
                                                              {"driver_alloc"},
                                                              {"driver_free"},
                                                              {"driver_pool"},
                                                              {"stream", kOfProcess},
                                                              {"thread", kOfProcess},
                                                              {"start", kOfProcess | kMoment},
                                                              {"stop", kOfProcess | kMoment},
                                                              {"lost", kOfProcess | kMoment},
                                                              {"note", kOfProcess | kMoment}}};

[[nodiscard]] constexpr bool has_trait(TimelineKind kind, KindTrait trait) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  return index < kKinds.size() && (kKinds[index].traits & trait) != 0;
}
/// Returns whether the record has a begin and an end of its own. All others are instants.
[[nodiscard]] constexpr bool is_slice(TimelineKind kind) noexcept {
  return has_trait(kind, kSlice);
}
/// Returns the kind as a word: "allocate", "pool_wait".
[[nodiscard]] constexpr std::string_view kind_name(TimelineKind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  return index < kKinds.size() ? kKinds[index].name : "unknown";
}

/// What a track stands for.
enum class TrackKind : std::uint8_t {
  kThread,    ///< a thread of the program
  kStream,    ///< a stream of our scheduler
  kDevice,    ///< a stream of a device, as a profiler numbers it
  kOverhead,  ///< the profiler's own work
  kProcess,   ///< instants of the whole process
};

/// One track. `lane` is above 0 only where slices would overlap.
struct Track {
  std::uint32_t process = 0;  ///< counted from 0
  TrackKind kind = TrackKind::kProcess;
  std::uint16_t device = 0;  ///< of kDevice: 1 + ordinal
  std::uint32_t lane = 0;
  std::uint64_t number = 0;  ///< number of the thread or stream

  friend bool operator==(const Track&, const Track&) = default;
};

/// Returns the track of a record of process `process`, in lane 0. Returns nothing for batches
/// (kAdmit, kClose, kSettle), which have tracks of their own, and for records about the recording
/// itself.
[[nodiscard]] std::optional<Track> track_of(std::uint32_t process, const TimelineRecord& record);
/// Returns the track's name for people. `given` is the program's name for it; may be empty.
[[nodiscard]] std::string track_name(const Track& track, std::string_view given);

/// The lanes of one track. Places each slice where it overlaps no other.
class Lanes {
 public:
  /// How slices on one lane may relate.
  enum class Rule : std::uint8_t {
    kApart,  ///< one after another
    kNest,   ///< also one inside another
  };
  explicit Lanes(Rule rule) : rule_(rule) {}

  /// Returns the lane of a slice, from 0: the first with room. Slices may come in any order; one
  /// that is much older than its neighbours may get a later lane than necessary. Returns nothing if
  /// kMost lanes are taken: draw the slice as an instant then.
  [[nodiscard]] std::optional<std::uint32_t> place(std::uint64_t begin, std::uint64_t end);

  static constexpr std::uint32_t kMost = 64;

 private:
  struct Span {
    std::uint64_t begin, end;
  };
  struct Lane {
    std::uint64_t forgotten = 0;  ///< spans that ended by then are no longer kept
    std::uint64_t latest = 0;     ///< latest end
    bool any = false;
    std::vector<Span> spans;  ///< in the order of arrival
  };
  [[nodiscard]] bool fits(const Lane& lane, Span span) const noexcept;
  static void add(Lane& lane, Span span);

  Rule rule_;
  std::vector<Lane> lanes_;
};

/// The tracks of one file, numbered from 1 in the order of their first record. Not thread-safe.
class Tracks {
 public:
  struct Place {
    std::uint32_t track = 0;  ///< its number in the file
    bool fresh = false;       ///< the first record of its track
    bool instant = false;     ///< draw this slice as an instant, because no lane has room
  };

  /// Starts the next process. Not needed before the first.
  void next_process() noexcept { ++process_; }
  /// Returns a record's place, or nothing if it has no track (see track_of).
  [[nodiscard]] std::optional<Place> place(const TimelineRecord& record);
  /// Takes the name from a kThread or kStream record. Returns the existing tracks whose name
  /// changed.
  [[nodiscard]] std::vector<std::uint32_t> rename(const TimelineRecord& record,
                                                  std::string_view name);
  [[nodiscard]] const Track& track(std::uint32_t number) const { return tracks_[number - 1]; }
  /// Returns the track's name for people; see track_name.
  [[nodiscard]] std::string name(std::uint32_t number) const;
  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(tracks_.size());
  }

 private:
  struct Hash {
    std::size_t operator()(const Track& track) const noexcept;
  };
  /// What all lanes of a thread or stream share.
  struct Group {
    explicit Group(Lanes::Rule rule) : lanes(rule) {}
    Lanes lanes;
    std::string given;
    std::vector<std::uint32_t> numbers;  ///< by lane; 0: not yet created
  };
  Group& group(const Track& first);

  std::uint32_t process_ = 0;
  std::vector<Track> tracks_;
  std::unordered_map<Track, Group, Hash> groups_;  ///< by lane 0
  Track last_{};                                   ///< the track whose group is `last_group_`
  Group* last_group_ = nullptr;
};

// Makes untrusted text safe to display.

/// Returns `text` as valid UTF-8: each invalid byte becomes U+FFFD, control characters become
/// spaces, and the text is cut after 4096 bytes.
[[nodiscard]] std::string shown_text(std::string_view text);

/// A call site, `file:line`, in its parts. One without a line has line 0.
struct SiteParts {
  std::string_view file;
  std::uint32_t line = 0;
};
[[nodiscard]] SiteParts split_site(std::string_view site) noexcept;

}  // namespace weir::timeline
