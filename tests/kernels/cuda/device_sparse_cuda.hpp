#pragma once

// Sparse matrices of sparse_reference.hpp in device memory.

#include "tests/kernels/cuda/device_array_cuda.hpp"
#include "tests/kernels/sparse_reference.hpp"

namespace weir::testing {

class DeviceRows {
 public:
  explicit DeviceRows(const reference::SparseRows& x)
      : columns_(x.columns), starts_(x.starts), indices_(x.indices), values_(x.values) {}
  [[nodiscard]] CsrRows view() const {
    return {columns_, starts_.view(), indices_.view(), values_.view()};
  }

 private:
  std::size_t columns_;
  DeviceArray<std::uint32_t> starts_;
  DeviceArray<std::uint32_t> indices_;
  DeviceArray<float> values_;
};

class DeviceColumns {
 public:
  explicit DeviceColumns(const reference::SparseColumns& x)
      : touched_(x.touched), starts_(x.starts), rows_(x.rows), values_(x.values) {}
  [[nodiscard]] CsrColumns view() const {
    return {touched_.view(), starts_.view(), rows_.view(), values_.view()};
  }

 private:
  DeviceArray<std::uint32_t> touched_;
  DeviceArray<std::uint32_t> starts_;
  DeviceArray<std::uint32_t> rows_;
  DeviceArray<float> values_;
};

class DeviceLabels {
 public:
  explicit DeviceLabels(const reference::ClassLists& labels)
      : classes_(labels.classes), starts_(labels.starts), indices_(labels.indices) {}
  [[nodiscard]] SparseLabels view() const { return {classes_, starts_.view(), indices_.view()}; }

 private:
  std::size_t classes_;
  DeviceArray<std::uint32_t> starts_;
  DeviceArray<std::uint32_t> indices_;
};

}  // namespace weir::testing
