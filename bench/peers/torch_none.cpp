#include "bench/peers/peers.hpp"
#include "peers_found.hpp"

namespace weir::bench {

void add_torch(Peers& peers) { peers.missing.emplace_back(kNoTorch); }

}  // namespace weir::bench
