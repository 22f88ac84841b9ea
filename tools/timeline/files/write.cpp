#include "tools/timeline/files/write.hpp"

#include "tools/timeline/chrome/gzip.hpp"

namespace weir::timeline {
namespace {

void write_unpacked(const Timeline& timeline, const FileFormat& format, ByteSink& sink) {
  if (format.whole != nullptr) {
    sink.append(format.whole(timeline));
  } else {
    write_timeline(timeline, *format.make_writer(sink));
  }
}

}  // namespace

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

void write_timeline(const Timeline& timeline, const NamedFormat& as, ByteSink& sink) {
  if (!as.packed()) {
    write_unpacked(timeline, *as.format, sink);
    return;
  }
  GzipSink packed(sink);
  write_unpacked(timeline, *as.format, packed);
  packed.finish();
}

}  // namespace weir::timeline
