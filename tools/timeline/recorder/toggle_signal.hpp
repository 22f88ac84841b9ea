#pragma once

// SIGUSR2 begins and ends what is recorded, in a program that has no use of its own for it.

#include <semaphore.h>

namespace weir::timeline {

/// Handles SIGUSR2 from here on: it is counted, and `wake`, which must stay, is posted. Returns
/// false where the program handles or ignores the signal itself: nothing changes then.
[[nodiscard]] bool take_toggle_signal(sem_t& wake) noexcept;
/// How often it has come since the last call.
[[nodiscard]] unsigned count_toggles() noexcept;
/// The signal does again what it does by default, unless the program has changed that or it is
/// kept.
void leave_toggle_signal() noexcept;
/// The signal ends this process no more: once it is left it does nothing, until it is taken again.
/// Who sends it cannot know that the recording, or the program, is just over.
void keep_toggle_signal() noexcept;
/// For the handler of forks, in the child: the signal does there what it does by default.
void leave_toggle_signal_to_parent() noexcept;

}  // namespace weir::timeline
