#pragma once

// Words of the Chrome format that the writer and the reader share.

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline::chrome {

inline constexpr unsigned kVersion = 1;
inline constexpr std::string_view kBeginEvent = "weir_timeline";    ///< ph M: the process
inline constexpr std::string_view kEndEvent = "weir_timeline_end";  ///< ph M: complete, lost
inline constexpr std::string_view kOpen = "open";                   ///< cat: kAdmit to kClose
inline constexpr std::string_view kInFlight = "in flight";          ///< cat: kClose to kSettle
inline constexpr std::string_view kFlow = "flow";                   ///< cat: kSubmit to kExecute
inline constexpr std::string_view kRecording = "recording";         ///< cat: a note for people
inline constexpr std::string_view kUnnamedBatch = "batch";  ///< name of a batch without a name

/// Returns the words of `detail`, indexed by its value; empty for kinds with a numeric `detail`.
[[nodiscard]] std::span<const std::string_view> detail_words(TimelineKind kind) noexcept;
/// Returns the kind for a word; nothing if there is none.
[[nodiscard]] std::optional<TimelineKind> kind_of(std::string_view word) noexcept;

}  // namespace weir::timeline::chrome
