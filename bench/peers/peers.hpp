#pragma once

// Other people's allocators, as what a trace is replayed against and what our pools are measured
// beside. Nothing of theirs is in this tree: bench/peers/fetch brings them, and a build that does
// not find one has one line that says so.

#include <functional>
#include <string>
#include <vector>

#include "tools/replay/subject/pool_subject.hpp"
#include "tools/replay/subject/subject.hpp"

namespace weir::bench {

using replay::MakeUpstream;

struct Peer {
  std::string name;      ///< in tables: `rmm_pool`
  std::string settings;  ///< what it is told, in words
  /// Whether it can be put on an upstream of ours. If not, it takes what the CUDA runtime gives,
  /// which on the stand-in are addresses with nothing behind them.
  bool takes_upstream = true;
  /// What makes it on what `upstream` makes. A subject that cannot even start in its capacity
  /// refuses every request. Of those that do not take an upstream there is one at a time: another
  /// thread that makes one waits.
  std::function<replay::MakeSubject(const MakeUpstream& upstream)> on;
};

struct Peers {
  std::vector<Peer> found;
  std::vector<std::string> missing;  ///< a line each
};

/// Those that this program was built with.
[[nodiscard]] Peers find_peers();

// By allocator: rmm_cuda.cpp or rmm_none.cpp, and so on.
void add_rmm(Peers& peers);
void add_torch(Peers& peers);

}  // namespace weir::bench
