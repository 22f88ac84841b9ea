// History and observers: what is native's gets everything too, for the memory that it serves.
// Snapshots: snapshot.cpp.

#include <optional>
#include <utility>

#include "tools/torch/plug/allocator.hpp"

namespace weir::torch_plug {

bool WeirAllocator::isHistoryEnabled() { return native_.isHistoryEnabled(); }

void WeirAllocator::recordHistory(bool enabled, native_api::CreateContextFn context,
                                  std::size_t most_entries,
                                  native_api::RecordContext when WEIR_TORCH_HISTORY_MORE) {
  // First, because it refuses what makes no sense.
  native_.recordHistory(enabled, context, most_entries, when WEIR_TORCH_HISTORY_MORE_PASSED);
#if !WEIR_TORCH_FROM(8)
  constexpr bool clear = false;
#endif
#if !WEIR_TORCH_HAS_SKIPPED_ACTIONS
  const std::vector<std::string> skipped;
#endif
  recorder_.set_history(enabled, context, most_entries, when, clear, skipped);
}

void WeirAllocator::attachOutOfMemoryObserver(native_api::OutOfMemoryObserver observer) {
  native_.attachOutOfMemoryObserver(observer);
  recorder_.add_observer(std::move(observer));
}

void WeirAllocator::attachAllocatorTraceTracker(native_api::AllocatorTraceTracker tracker) {
  native_.attachAllocatorTraceTracker(tracker);
  recorder_.add_tracker(std::move(tracker));
}

#if WEIR_TORCH_HAS_ANNOTATIONS
void WeirAllocator::recordAnnotation(
    const std::vector<std::pair<std::string, std::string>>& annotation) {
  native_.recordAnnotation(annotation);
}
#endif

#if WEIR_TORCH_HAS_COMPILE_CONTEXT
void WeirAllocator::pushCompileContext(std::string& context) {
  native_.pushCompileContext(context);
  recorder_.push_compile_context(context);
}

void WeirAllocator::popCompileContext() {
  native_.popCompileContext();
  recorder_.pop_compile_context();
}
#endif

#if WEIR_TORCH_HAS_USER_METADATA
void WeirAllocator::setUserMetadata(const std::string& metadata) {
  native_.setUserMetadata(metadata);
}

std::string WeirAllocator::getUserMetadata() { return native_.getUserMetadata(); }
#endif

#if WEIR_TORCH_HAS_CONTEXT_OF
std::shared_ptr<c10::GatheredContext> WeirAllocator::getContextForPointer(const void* pointer) {
  const std::optional<Block> block = blocks_.find(pointer);
  return block ? block->context : native_.getContextForPointer(pointer);
}
#endif

#if WEIR_TORCH_HAS_REJECTIONS
void WeirAllocator::attachOomRejectionObserver(native_api::OomRejectionObserver observer) {
  native_.attachOomRejectionObserver(std::move(observer));
}
#endif

#if WEIR_TORCH_HAS_MEMORY_NOTES
bool WeirAllocator::supportsUserMetadata() { return native_.supportsUserMetadata(); }

void WeirAllocator::annotateMemory(const void* pointer, const std::string& metadata) {
  if (const std::optional<Block> block = blocks_.find(pointer)) {
    recorder_.on_annotation(pointer, *block, metadata);
  } else {
    native_.annotateMemory(pointer, metadata);
  }
}
#endif

}  // namespace weir::torch_plug
