// Gives standard containers, and a block of its own, memory of one pool under a budget.

#include <exception>
#include <iostream>
#include <memory_resource>
#include <string>
#include <vector>
#include <weir/allocator/adapt/allocation.hpp>
#include <weir/allocator/adapt/host_memory_resource.hpp>
#include <weir/allocator/adapt/std_allocator.hpp>
#include <weir/allocator/progress/host_progress.hpp>

int main() {
  // begin containers
  weir::HostUpstream upstream{weir::mib(64)};
  weir::HostProgress progress;
  weir::Pool pool{{upstream, progress}};
  weir::HostMemoryResource resource{pool, progress.stream()};

  std::pmr::vector<std::pmr::string> names{&resource};
  names.emplace_back("a name too long to be kept inside of its string");
  std::vector<float, weir::StdAllocator<float>> numbers(1 << 20, 1.0F,
                                                        weir::StdAllocator<float>{resource});
  const weir::Allocation scratch{pool, weir::mib(8), progress.stream(), "scratch"};
  // end containers
  std::cout << "held: " << weir::format_bytes(pool.statistics().requested.current) << '\n';

  try {
    numbers.resize(1 << 24);
  } catch (const std::bad_alloc& error) {  // its text is the pool's report
    std::cout << std::string(error.what()).substr(0, 13) << '\n';
  }
}
