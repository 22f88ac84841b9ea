#include "bench/stress/accounting.hpp"

#include "tools/replay/subject/pool_subject.hpp"

namespace weir::bench {

std::string accounting_fault(const replay::Subject& subject, Bytes requested) {
  const replay::Footprint footprint = subject.footprint();
  const bool says = footprint.allocated.count != 0 || requested.count == 0;
  if (says && footprint.allocated < requested) {
    return "allocated is less than what is live: " + format_bytes(footprint.allocated);
  }
  if (requested.count == 0 && footprint.allocated.count != 0) {
    return "nothing is live, and " + format_bytes(footprint.allocated) + " are allocated";
  }
  if (footprint.allocated > footprint.reserved) return "allocated is more than reserved";
  const auto* const pool = dynamic_cast<const replay::PoolSubject*>(&subject);
  if (pool == nullptr) return {};

  const Statistics statistics = pool->pool().statistics();
  if (statistics.requested.current != requested) {
    return "the pool has " + format_bytes(statistics.requested.current) + " requested, and " +
           format_bytes(requested) + " are live";
  }
  const Bytes sum =
      statistics.allocated.current + statistics.awaiting.current + statistics.cached.current;
  if (sum != statistics.reserved.current) {
    return "allocated + awaiting + cached is not reserved: " + format_bytes(sum) + " and " +
           format_bytes(statistics.reserved.current);
  }
  if (statistics.reserved.current > statistics.budget) return "reserved is above the budget";
  return {};
}

}  // namespace weir::bench
