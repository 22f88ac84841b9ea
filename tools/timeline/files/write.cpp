#include "tools/timeline/files/write.hpp"

namespace weir::timeline {

void write_timeline(const Timeline& timeline, Writer& writer) {
  std::uint64_t lost = 0;
  for (const Process& process : timeline.processes) {
    writer.begin(process.info);
    writer.write(process.records, ProcessNames(process));
    writer.end_process(process.complete ? Writer::End::kComplete : Writer::End::kCut, process.lost);
    lost += process.lost;
  }
  writer.finish(lost);
}

}  // namespace weir::timeline
