// A program that uses CUDA by commands, one a line, and knows nothing of Weir. It answers each line
// with one:
//
//   take MIB     `took N`, where N is the number of the memory, or `refused`
//   free N       `freed`
//   info         `FREE of TOTAL`, in MiB, as the driver reports it
//   device N     `device N`: later commands are for that one
//
// It ends with its input.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

std::string done(const std::string& line, std::vector<void*>& taken) {
  std::istringstream words(line);
  std::string what;
  std::size_t number = 0;
  words >> what >> number;
  if (what == "take") {
    void* memory = nullptr;
    if (cudaMalloc(&memory, number * kMib) != cudaSuccess) return "refused";
    taken.push_back(memory);
    return "took " + std::to_string(taken.size() - 1);
  }
  if (what == "free") return cudaFree(taken.at(number)) == cudaSuccess ? "freed" : "not freed";
  if (what == "device") {
    return (cudaSetDevice(static_cast<int>(number)) == cudaSuccess ? "device " : "no device ") +
           std::to_string(number);
  }
  std::size_t free = 0;
  std::size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return "unknown";
  return std::to_string(free / kMib) + " of " + std::to_string(total / kMib);
}

}  // namespace

int main() {
  std::vector<void*> taken;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << done(line, taken) << std::endl;
  }
  return 0;
}
