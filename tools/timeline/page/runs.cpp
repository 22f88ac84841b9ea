#include "tools/timeline/page/runs.hpp"

#include <algorithm>
#include <utility>

namespace weir::timeline {

bool RunThinner::joins(const Run& last, const Run& next) const {
  return columns_.of(last.begin) == columns_.of(next.begin) &&
         last.end - last.begin < columns_.width() && next.end - next.begin < columns_.width();
}

void RunThinner::add(const Run& run) {
  Run next = run;
  next.end = std::max(next.begin, next.end);
  if (out_.empty() || !joins(out_.back(), next)) {
    out_.push_back(next);
    return;
  }
  Run& last = out_.back();
  last.end = std::max(last.end, next.end);
  last.busy += next.busy;
  last.count += next.count;
  last.bytes += next.bytes;
  if (next.longest > last.longest) {
    last.longest = next.longest;
    last.name = next.name;
    last.batch = next.batch;
    last.category = next.category;
  }
}

std::vector<Run> RunThinner::take() { return std::exchange(out_, {}); }

std::vector<Run> thin(const std::vector<Run>& runs, Columns columns) {
  RunThinner thinner(columns);
  for (const Run& run : runs) {
    thinner.add(run);
  }
  return thinner.take();
}

}  // namespace weir::timeline
