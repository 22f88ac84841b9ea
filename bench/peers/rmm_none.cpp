#include "bench/peers/peers.hpp"
#include "peers_found.hpp"

namespace weir::bench {

void add_rmm(Peers& peers) { peers.missing.emplace_back(kNoRmm); }

}  // namespace weir::bench
