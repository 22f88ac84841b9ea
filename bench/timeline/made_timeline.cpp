// Writes a synthetic timeline of a simulated trainer, for bench/timeline/timelines.py.
//
//   made_timeline EVENTS FILE     of a format by its suffix

#include "tests/timeline/support/made_timeline.hpp"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string_view>

#include "tools/program/run_main.hpp"
#include "tools/timeline/files/formats.hpp"

namespace weir::timeline {
namespace {

class StreamSink final : public ByteSink {
 public:
  explicit StreamSink(std::ostream& stream) : stream_(stream) {}
  void append(std::string_view bytes) noexcept override {
    stream_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::ostream& stream_;
};

int run(std::uint64_t events, const char* path) {
  constexpr std::uint64_t kEventsOfABatch = 33;
  const Timeline timeline = testing::made_timeline(
      {.batches = static_cast<std::uint32_t>(events / kEventsOfABatch), .barrier_every = 10});
  std::ofstream file(path, std::ios::binary);
  StreamSink sink(file);
  write_timeline(timeline, require_format("FILE", path, FormatUse::kRecord), sink);
  if (!file.flush()) {
    std::fprintf(stderr, "made_timeline: cannot write %s\n", path);
    return 1;
  }
  std::printf("%zu\n", timeline.processes.front().records.size());
  return 0;
}

}  // namespace
}  // namespace weir::timeline

int main(int count, char** arguments) {
  std::uint64_t events = 0;
  const std::string_view number = count == 3 ? arguments[1] : "";
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), events);
  if (number.empty() || error != std::errc() || end != number.data() + number.size()) {
    std::fprintf(stderr, "usage: made_timeline EVENTS FILE\n");
    return 2;
  }
  return weir::run_main("made_timeline", [&] { return weir::timeline::run(events, arguments[2]); });
}
