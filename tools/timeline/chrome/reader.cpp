#include "tools/timeline/chrome/reader.hpp"

#include <optional>

#include "allocator/base/error.hpp"
#include "tools/timeline/chrome/event.hpp"
#include "tools/timeline/chrome/foreign.hpp"
#include "tools/timeline/chrome/records.hpp"

namespace weir::timeline {
namespace {

/// Chooses by the first event whether the events are ours or another program's.
class Chooser final : public chrome::EventTaker {
 public:
  explicit Chooser(ReadState& state) : ours_(state), foreign_(state) {}

  void take(const chrome::Event& event) override {
    if (!is_ours_) is_ours_ = chrome::is_ours(event);
    if (*is_ours_) {
      ours_.take(event);
    } else {
      foreign_.take(event);
    }
  }
  [[nodiscard]] Timeline finish(const std::string& path, const chrome::FileFacts& facts) {
    if (!is_ours_) throw UsageError(path + ": not a timeline: it has no events");
    return *is_ours_ ? ours_.finish() : foreign_.finish(facts);
  }

 private:
  chrome::RecordTaker ours_;
  chrome::ForeignTaker foreign_;
  std::optional<bool> is_ours_;
};

}  // namespace

Timeline read_chrome(const std::string& path, const ReadLimits& limits) {
  ReadState state{.path = path, .limits = limits};
  Chooser chooser(state);
  const chrome::FileFacts facts = chrome::read_events(path, limits, chooser);
  return chooser.finish(path, facts);
}

}  // namespace weir::timeline
