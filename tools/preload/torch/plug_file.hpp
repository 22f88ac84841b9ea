#pragma once

// The files of plugs for PyTorch, which lie beside libweir.so: libweir_torch_2.15.so is for PyTorch
// 2.15, and libweir_torch_2.5_cxx03.so for a 2.5 with strings of the older C++ ABI.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/preload/torch/torch_version.hpp"

namespace weir::preload {

/// How std::string and std::list look in a PyTorch: its _GLIBCXX_USE_CXX11_ABI.
enum class CxxAbi : std::uint8_t { kCxx11, kCxx03 };

/// A constructor in libc10.so that takes a string, by the older C++ ABI and by today's. Both are
/// there in every PyTorch from 2.4 to 2.15 of that ABI.
inline constexpr const char* kCxx03Constructor = "_ZN3c105ErrorC1ENS_14SourceLocationESs";
inline constexpr const char* kCxx11Constructor =
    "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";

/// Returns the file's name, without a folder.
[[nodiscard]] std::string plug_name(const TorchVersion& version, CxxAbi abi);

/// Returns the versions of PyTorch that the files in `folder` are named for, each once, the oldest
/// first: `2.9`, `2.15`. Empty if the folder cannot be read. Does not look into the files.
[[nodiscard]] std::vector<std::string> versions_of_plugs_in(const std::string& folder);

/// Returns why the file cannot be loaded, for people: `it is a folder`. Nothing if the loader may
/// try: it is a whole shared library for this machine. The loader itself does not notice that a
/// file was cut off, and the process would end by SIGBUS.
[[nodiscard]] std::optional<std::string> why_unfit(const std::string& path);

/// Returns up to `most` bytes of a file's beginning. Nothing if it cannot be read; never waits.
[[nodiscard]] std::optional<std::string> read_beginning(const std::string& path, std::size_t most);

}  // namespace weir::preload
