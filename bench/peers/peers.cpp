#include "bench/peers/peers.hpp"

namespace weir::bench {

Peers find_peers() {
  Peers peers;
  add_rmm(peers);
  add_torch(peers);
  return peers;
}

}  // namespace weir::bench
