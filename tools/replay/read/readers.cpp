#include "tools/replay/read/readers.hpp"

#include <new>

#include "allocator/base/error.hpp"
#include "allocator/log/allocation_log_reader.hpp"

namespace weir::replay {
namespace {

Trace read_csv(const Source& source) {
  Csv csv(source);
  if (is_rmm_log(csv)) return read_rmm_log(source.name, csv);
  if (is_lifetimes(csv)) return read_lifetimes(source.name, csv);
  throw UsageError(source.name + ": not a trace: its first line is " + shown_text(csv.header()) +
                   "; expected an allocation log of Weir, RMM's log (Thread,Time,Action,Pointer,"
                   "Size,Stream) or lifetimes (buffer,start,end,size)");
}

}  // namespace

std::vector<Trace> read_traces(const Source& source) {
  if (is_allocation_log(source.bytes)) return read_log_traces(source);
  std::vector<Trace> traces{read_csv(source)};
  if (!traces.front().operations.empty()) return traces;
  const std::string& cut = traces.front().cut;
  throw UsageError(source.name + ": the trace has no allocations" +
                   (cut.empty() ? "" : " (" + cut + ")"));
}

std::vector<Trace> read_traces(const std::string& path) {
  try {
    return read_traces(read_source(path));
  } catch (const std::bad_alloc&) {
    throw UsageError(path + ": not enough memory to read it");
  }
}

}  // namespace weir::replay
