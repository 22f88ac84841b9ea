// The timeline of a program with libweir.so swapped in.

#include "tools/preload/process/publishing.hpp"

#include <exception>
#include <string>

#include "allocator/base/log.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/timeline/source.hpp"
#include "tools/preload/driver/scope.hpp"
#include "tools/preload/process/process.hpp"
#include "tools/timeline/begin.hpp"
#include "tools/timeline/live/publisher.hpp"

namespace weir::preload {
namespace {

/// Lets one thread at a time begin the process's recording.
struct Beginning {
  Mutex mutex{LockRank::kSources};
  std::string asked WEIR_GUARDED_BY(mutex);  ///< the name as given
};
Beginning& beginning() {
  static auto* const kBeginning = new Beginning;  // never destroyed: threads may call after statics
                                                  // are gone
  return *kBeginning;
}

/// The devices of the process.
class ShownDevices final : public TimelineSource {
 public:
  explicit ShownDevices(const Process& process) : process_(process) { enlist(); }
  ~ShownDevices() override { leave(); }
  void add_figures(LiveFigures& figures) const override { process_.add_figures(figures); }
  void record_live(TimelineSink& /*sink*/) override {}

 private:
  const Process& process_;
};

timeline::BudgetAnswer set_budget_asked(const timeline::BudgetAsk& ask) noexcept {
  Process* const process = Process::get_if_any();
  timeline::BudgetAnswer answer{.code = timeline::BudgetCode::kNoDevice};
  if (process == nullptr) return answer;
  try {
    for (Device* const device : process->devices().in_use()) {
      if (ask.device == static_cast<std::uint64_t>(device->number()) + 1) {
        return device->set_budget(ask.budget, "weir set");
      }
    }
  } catch (const std::exception& error) {
    log(LogLevel::kError, std::string("a budget was not set: ") + error.what());
  }
  return answer;
}

/// No work of the device waits for this thread, so it may wait for a device that is always busy.
constexpr std::chrono::milliseconds kPatience{200};

void look_at_budgets() noexcept {
  if (Process* const process = Process::get_if_any()) process->devices().keep_budgets(kPatience);
}

timeline::Publisher* publisher(const Settings& settings) noexcept {
  return timeline::Publisher::begin(settings.publish.value, process_environment(),
                                    {.set_budget = set_budget_asked, .look = look_at_budgets});
}

}  // namespace

void show_devices(const Process& process) {
  new ShownDevices(process);  // never destroyed: threads may look after statics are gone
}

timeline::Recorder* begin_process_recording(const timeline::TimelineSettings& settings) {
  Beginning& begun = beginning();
  const Lock lock(begun.mutex);
  timeline::Recorder* const before = timeline::recording();
  const std::string& file = settings.file.value;
  if (before == nullptr) {
    begun.asked = file;
    return timeline::record_program(settings, {.gpu = true});
  }
  if (!file.empty() && file != begun.asked) {
    refuse(settings.file.source, file, "'" + begun.asked + "', which this process records to");
  }
  return before;
}

void begin_timeline(const timeline::TimelineSettings& settings) {
  const Inside inside;  // CUDA calls of a recording are no work of the program
  if (timeline::recording() == nullptr) (void)begin_process_recording(settings);
}

void begin_publishing(const Settings& settings) noexcept { (void)publisher(settings); }

void publish_device(const Settings& settings, const std::string& name) noexcept {
  timeline::Publisher* const its = publisher(settings);
  try {
    if (its != nullptr) its->add_device(name);
  } catch (const std::exception& error) {
    log(LogLevel::kDebug, error.what());
  }
}

}  // namespace weir::preload
