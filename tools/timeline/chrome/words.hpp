#pragma once

// The words of the Chrome format that its writer and its reader share.

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
inline constexpr std::string_view kRecording = "recording";         ///< cat: a remark for people
inline constexpr std::string_view kUnnamedBatch = "batch";          ///< name of one without a name

/// The words of `detail`; empty for kinds that have a number there. A word's place is its value.
[[nodiscard]] std::span<const std::string_view> detail_words(TimelineKind kind) noexcept;
/// The kind of the word; empty for no kind's.
[[nodiscard]] std::optional<TimelineKind> kind_of(std::string_view word) noexcept;

}  // namespace weir::timeline::chrome
