#include "tools/replay/subject/upstreams.hpp"

namespace weir::replay {

// Never called: find_cuda finds no device in such a build.
MakeUpstream cuda_upstreams() { return {}; }
Bytes cuda_capacity() { return {}; }

}  // namespace weir::replay
