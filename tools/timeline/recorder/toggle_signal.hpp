#pragma once

// Lets SIGUSR2 start and stop recording, in a program that does not use the signal itself.

#include <semaphore.h>

namespace weir::timeline {

/// Begins to handle SIGUSR2: counts it and posts `wake`, which must stay valid. Returns false and
/// changes nothing if the program handles or ignores the signal itself.
[[nodiscard]] bool take_toggle_signal(sem_t& wake) noexcept;
/// Returns how many signals have arrived since the last call.
[[nodiscard]] unsigned count_toggles() noexcept;
/// Restores the default action, unless the program has changed it or it is kept.
void leave_toggle_signal() noexcept;
/// Makes the signal harmless for good: when released, it is ignored instead of ending the process,
/// until taken again. A sender cannot know that the recording, or the program, has just ended.
void keep_toggle_signal() noexcept;
/// For the fork handler in the child: restores the default action there.
void leave_toggle_signal_to_parent() noexcept;

}  // namespace weir::timeline
