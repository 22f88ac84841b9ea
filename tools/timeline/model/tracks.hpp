#pragma once

// Where a record is drawn: which track, and which lane of it. Every writer of pictures uses the
// same rules, so that the same run looks the same in every format.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "allocator/timeline/record.hpp"

namespace weir::timeline {

/// True if the record has a beginning and an end of its own. All others are moments.
[[nodiscard]] bool is_slice(TimelineKind kind) noexcept;
/// The kind as a word for people and for files: "allocate", "pool_wait".
[[nodiscard]] std::string_view kind_name(TimelineKind kind) noexcept;

/// What a track stands for.
enum class TrackKind : std::uint8_t {
  kThread,    ///< a thread of the program
  kStream,    ///< a stream of our scheduler
  kDevice,    ///< a stream as a profiler numbers it, of one device
  kOverhead,  ///< the profiler's own work
  kProcess,   ///< moments that belong to no thread
};

/// One track. `lane` is 0 but where slices would overlap.
struct Track {
  std::uint32_t process = 0;  ///< counted from 0
  TrackKind kind = TrackKind::kProcess;
  std::uint16_t device = 0;  ///< of kDevice: 1 + ordinal
  std::uint32_t lane = 0;
  std::uint64_t number = 0;  ///< of the thread or stream

  friend bool operator==(const Track&, const Track&) = default;
};

/// The track of a record of process `process`, in lane 0. Batches (kAdmit, kClose, kSettle) are
/// drawn on tracks of their own and have none; neither have records of the recording.
[[nodiscard]] std::optional<Track> track_of(std::uint32_t process, const TimelineRecord& record);
/// The track's name for people. `given` is the name that the program gave; may be empty.
[[nodiscard]] std::string track_name(const Track& track, std::string_view given);

/// The lanes of one track: puts each slice where it overlaps no other.
class Lanes {
 public:
  /// What slices on one lane may do.
  enum class Rule : std::uint8_t {
    kApart,  ///< one after the other
    kNest,   ///< also one within the other
  };
  explicit Lanes(Rule rule) : rule_(rule) {}

  /// The lane of a slice, from 0: the first that has room. Slices may come in any order; one that
  /// is much older than its neighbours may get a later lane than it needs. Empty if kMost lanes
  /// are taken: draw the slice as a moment then.
  [[nodiscard]] std::optional<std::uint32_t> place(std::uint64_t begin, std::uint64_t end);

  static constexpr std::uint32_t kMost = 64;

 private:
  struct Span {
    std::uint64_t begin, end;
  };
  struct Lane {
    std::uint64_t forgotten = 0;  ///< spans that ended up to here are no longer kept
    std::uint64_t latest = 0;     ///< end
    bool any = false;
    std::vector<Span> spans;  ///< in the order in which they came
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
    bool fresh = false;       ///< it is the track's first
    bool moment = false;      ///< draw it as a moment, though it is a slice: no lane has room
  };

  /// The records that follow are of the next process. Not needed before the first.
  void next_process() noexcept { ++process_; }
  /// The place of a record; empty if it has none (see track_of).
  [[nodiscard]] std::optional<Place> place(const TimelineRecord& record);
  /// Takes the name out of a kThread or kStream record. Returns the tracks that are there already
  /// and are now called otherwise.
  [[nodiscard]] std::vector<std::uint32_t> rename(const TimelineRecord& record,
                                                  std::string_view name);
  [[nodiscard]] const Track& track(std::uint32_t number) const { return tracks_[number - 1]; }
  /// For people; see track_name.
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
    std::vector<std::uint32_t> numbers;  ///< by lane; 0: not there yet
  };
  Group& group(const Track& first);

  std::uint32_t process_ = 0;
  std::vector<Track> tracks_;
  std::unordered_map<Track, Group, Hash> groups_;  ///< by lane 0
  Track last_{};                                   ///< whose group `last_group_` is
  Group* last_group_ = nullptr;
};

}  // namespace weir::timeline
