#include "trainer/run/interrupt.hpp"

#include <semaphore.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <system_error>
#include <thread>

#include "allocator/base/error.hpp"

namespace weir {
namespace {

sem_t asked;

/// Starts the program's first own thread, so a lack of room for threads shows here.
template <typename Function>
void start_thread(Function function) {
  try {
    std::thread(function).detach();
  } catch (const std::system_error& error) {
    throw Error("no thread can be started (" + error.code().message() +
                "): raise `ulimit -v` or `ulimit -u`");
  }
}

}  // namespace

std::stop_token stop_on_interrupt() {
  // Both live to the end of the process, because the thread below may still wait for a signal then.
  static auto* const kSource = new std::stop_source;
  sem_init(&asked, 0, 0);
  // Unlike a handler, a thread may take locks and wake waiters.
  start_thread([] {
    while (sem_wait(&asked) != 0 && errno == EINTR) continue;
    for (const int signal : {SIGINT, SIGTERM}) (void)std::signal(signal, SIG_DFL);
    std::fputs("\nweir-train: stopping after the submitted work; interrupt again to stop at once\n",
               stderr);
    kSource->request_stop();
  });
  // A handler instead of blocked signals: the BLAS has started threads before main, and a signal
  // blocked only in later threads would go to one of those and kill the program.
  struct sigaction action {};
  action.sa_handler = [](int) { sem_post(&asked); };
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  return kSource->get_token();
}

}  // namespace weir
