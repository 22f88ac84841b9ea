#include "trainer/interrupt.hpp"

#include <csignal>
#include <cstdio>
#include <thread>

namespace weir {

std::stop_token stop_on_interrupt() {
  // Lives to the end of the process: the thread below may still be waiting for a signal then.
  static auto* const source = new std::stop_source;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A thread that waits for the signal may do what a handler may not: take locks and wake waiters.
  std::thread([signals] {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) return;
    std::fputs("\nweir-train: stopping after the work that is submitted; again to end at once\n",
               stderr);
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    source->request_stop();
  }).detach();
  return source->get_token();
}

}  // namespace weir
