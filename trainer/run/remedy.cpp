#include "trainer/run/remedy.hpp"

namespace weir {
namespace {

/// Pools of pages ask the upstream for whole ones. The others ask for as little as the block.
constexpr Bytes kPage = mib(2);

}  // namespace

std::string remedy_for(const MemoryShortage& shortage, const RunSoFar& run) {
  if (shortage.budget.count == 0) return "";
  if (run.shared) {
    return "a larger WEIR_SHARE_FLOOR, or fewer programs that share: the budget is this one's part";
  }
  const std::string larger = "a larger " + run.budgets + ", or a smaller --batch-size: ";
  const std::string block = format_bytes(shortage.block);
  if (shortage.block.count == 0 || shortage.block > shortage.budget) {
    return larger + "this request alone exceeds the budget";
  }
  if (shortage.allocated + shortage.block > shortage.budget) {
    return larger + format_bytes(shortage.allocated) + " in use and this " + block + " exceed it";
  }
  const Bytes reserved = shortage.allocated + shortage.awaiting + shortage.cached;
  if (reserved + shortage.block + kPage <= shortage.budget) {
    return "a smaller " + run.budgets + ": the device has less memory left than the budget allows";
  }
  if (run.batches == 0) {
    return larger + "one batch does not fit";
  }
  if (run.policy == Policy::kUnbounded) {
    if (shortage.awaiting.count == 0) return "--policy throttled: it hands cached memory over";
    return "--policy throttled: it waits for the " + format_bytes(shortage.awaiting) +
           " that is freed and still in use by the device";
  }
  return "another --pool, see `weir replay --recommend`: free pieces are too small for " + block;
}

}  // namespace weir
