#include "trainer/sparse/sparse_set.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "allocator/base/error.hpp"
#include "allocator/base/setting.hpp"
#include "tools/program/output_file.hpp"
#include "trainer/sparse/libsvm.hpp"

namespace weir {
namespace {

void write_rows(OutputFile& file, const SparseDraw& draw, std::uint64_t first, std::uint64_t count,
                const std::stop_token& stop) {
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  std::string text = std::to_string(count) + " " + std::to_string(draw.shape().columns) + " " +
                     std::to_string(draw.shape().classes) + "\n";
  SparseRows row;
  file.begin();
  for (std::uint64_t number = first; number < first + count; ++number) {
    if (stop.stop_requested()) throw Cancelled("stopped: the data set is not written");
    row.clear();
    draw.append(number, row);
    append_libsvm(row, 0, text);
    if (text.size() < kPiece) continue;
    file.append(text);
    text.clear();
  }
  file.append(text);
  file.commit();
}

}  // namespace

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

void make_sparse(const std::string& option, const std::string& directory, std::uint64_t rows,
                 const SparseDraw& draw, const std::stop_token& stop) {
  constexpr std::uint64_t kMostRows = kMostSparse / 2;
  if (rows == 0 || rows > kMostRows) {
    refuse(option, std::to_string(rows) + " rows", "from 1 to " + std::to_string(kMostRows));
  }
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    refuse(option, directory, "a directory that can be written (" + error.message() + ")");
  }
  const std::filesystem::path path(directory);
  OutputFile train(option, (path / kSparseTrainFile).string(), OutputFile::Beside::kOneName);
  OutputFile test(option, (path / kSparseTestFile).string(), OutputFile::Beside::kOneName);
  write_rows(train, draw, 0, rows, stop);
  write_rows(test, draw, rows, std::max<std::uint64_t>(rows / 10, 1), stop);
}

}  // namespace weir
