#include "trainer/sparse/sparse_set.hpp"

#include <algorithm>
#include <filesystem>

#include "trainer/sparse/libsvm.hpp"

namespace weir {

SparseSet read_sparse_set(const std::string& option, const std::string& directory,
                          SparseWidths widths) {
  const std::filesystem::path path(directory);
  SparseSet set{.train = read_libsvm(option, (path / kSparseTrainFile).string(), widths),
                .test = read_libsvm(option, (path / kSparseTestFile).string(), widths)};
  const std::size_t columns = std::max(set.train.columns, set.test.columns);
  const std::size_t classes = std::max(set.train.classes, set.test.classes);
  for (SparseRows* rows : {&set.train, &set.test}) {
    rows->columns = columns;
    rows->classes = classes;
  }
  return set;
}

}  // namespace weir
