#include "scheduler/admission/producer.hpp"

namespace weir {

std::uint64_t this_thread_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  thread_local const std::uint64_t kNumber = ++last;
  return kNumber;
}

Producer this_producer() {
  static constinit thread_local bool is_over = false;
  struct Own {
    std::shared_ptr<std::atomic<bool>> ended = std::make_shared<std::atomic<bool>>(false);
    Own() = default;
    ~Own() {
      ended->store(true);
      is_over = true;
    }
    Own(const Own&) = delete;
    Own& operator=(const Own&) = delete;
  };
  // Destructors of other thread_locals and of statics may begin batches after that of `kOwn`.
  if (is_over) return {this_thread_number(), std::make_shared<std::atomic<bool>>(true)};
  thread_local const Own kOwn;
  return {this_thread_number(), kOwn.ended};
}

}  // namespace weir
