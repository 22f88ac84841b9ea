// Measures what publishing costs a program that does nothing else: processor time of the whole
// process, at the usual sampling rate. Prints one line.

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "allocator/base/mutex.hpp"
#include "allocator/timeline/source.hpp"
#include "tools/timeline/live/publisher.hpp"

namespace weir::timeline {
namespace {

/// Works like a pool: a lock, and a handful of sums.
class Source final : public TimelineSource {
 public:
  Source() { enlist(); }
  ~Source() override { leave(); }
  void add_figures(LiveFigures& figures) const override {
    const Lock lock(mutex_);
    figures.budget += gib(6);
    figures.reserved += gib(3);
    figures.allocated += gib(1);
  }
  void record_live(TimelineSink& /*sink*/) override {}

 private:
  mutable Mutex mutex_{LockRank::kPool};
};

double processor_ms() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto ms = [](const timeval& time) {
    return 1e3 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

int measure(std::uint64_t seconds) {
  std::string folder = "/dev/shm/weir-live-cost.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const Source pool;
  const Source scheduler;
  bool published = false;
  double used = 0;
  double start = 0;
  {
    Publisher publisher({.folders = {{folder, {}}}, .program = "live_cost"});
    const double before = processor_ms();
    publisher.start();
    published = publisher.wait_for_samples(1);
    const double begun = processor_ms();
    start = begun - before;
    published = published && publisher.wait_for_samples(1 + 4 * seconds);
    used = processor_ms() - begun;
  }
  std::filesystem::remove_all(folder);
  if (!published) return 1;
  const double share = used / (1e3 * static_cast<double>(seconds));
  std::printf("begun in %.2f ms; then %.2f ms in %d s: %.2f s an hour, %.4f%% of a processor\n",
              start, used, static_cast<int>(seconds), share * 3600, share * 100);
  return 0;
}

}  // namespace
}  // namespace weir::timeline

int main(int argc, char** argv) {
  const std::uint64_t seconds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20;
  return weir::timeline::measure(seconds == 0 ? 20 : seconds);
}
