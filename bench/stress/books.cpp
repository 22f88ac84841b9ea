#include "bench/stress/books.hpp"

#include "tools/replay/subject/pool_subject.hpp"

namespace weir::bench {

std::string wrong_with_books(const replay::Subject& subject, Bytes requested) {
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

  const Statistics books = pool->pool().statistics();
  if (books.requested.current != requested) {
    return "the pool has " + format_bytes(books.requested.current) + " requested, and " +
           format_bytes(requested) + " are live";
  }
  const Bytes sum = books.allocated.current + books.awaiting.current + books.cached.current;
  if (sum != books.reserved.current) {
    return "allocated + awaiting + cached is not reserved: " + format_bytes(sum) + " and " +
           format_bytes(books.reserved.current);
  }
  if (books.reserved.current > books.budget) return "reserved is above the budget";
  return {};
}

}  // namespace weir::bench
