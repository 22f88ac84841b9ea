#include "bench/peers/runtime.hpp"

namespace weir::bench {

const PeersRuntime* peers_runtime() { return nullptr; }

}  // namespace weir::bench
