#include "tools/timeline/page/data.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <functional>
#include <new>
#include <unordered_map>
#include <utility>

#include "tools/timeline/page/picture.hpp"
#include "tools/timeline/page/tables.hpp"

namespace weir::timeline {
namespace {

using Json = nlohmann::ordered_json;
using Column = std::vector<std::int64_t>;

constexpr std::uint32_t kOverviewColumns = 2048;  // about the width of a screen
constexpr std::uint32_t kLeastColumns = 64;

// The texts of one process on the page, each once.
class Texts {
 public:
  explicit Texts(const Process& process) : process_(&process) {}

  [[nodiscard]] std::uint64_t of(std::uint32_t name) {
    const auto [at, is_new] = numbers_.try_emplace(name, texts_.size());
    if (is_new) {
      texts_.push_back(shorten(process_->name(name), kLongestName));
    }
    return at->second;
  }
  [[nodiscard]] Json take() { return std::move(texts_); }

 private:
  const Process* process_;
  std::unordered_map<std::uint32_t, std::size_t> numbers_;
  Json texts_ = Json::array();
};

[[nodiscard]] Json packed(const std::vector<Column>& columns) {
  Json out;
  out["rows"] = columns.empty() ? 0 : columns.front().size();
  out["columns"] = columns.size();
  out["data"] = pack(columns);
  return out;
}

// Appends a row of numbers to columns.
template <typename Number>
void append_row(std::vector<Column>& columns, std::span<const Number> row) {
  for (std::size_t k = 0; k < columns.size(); ++k) {
    columns[k].push_back(static_cast<std::int64_t>(row[k]));
  }
}

[[nodiscard]] Json packed(const Series& series) {
  std::vector<Column> columns(series.width);
  for (std::size_t i = 0; i < series.rows(); ++i) {
    append_row(columns, series.row(i));
  }
  return packed(columns);
}

[[nodiscard]] Json packed(const std::vector<Run>& runs, Texts& texts) {
  std::vector<Column> columns(8);
  std::uint64_t before = 0;
  for (const Run& run : runs) {
    const std::array<std::uint64_t, 8> row{
        run.begin - before, run.end - run.begin, run.busy,     run.count,
        texts.of(run.name), run.batch,           run.category, run.bytes};
    before = run.begin;
    append_row<std::uint64_t>(columns, row);
  }
  return packed(columns);
}

// Packs two levels of detail: an overview and the full data.
template <typename Data, typename Pack>
[[nodiscard]] Json levels(const Data& data, std::uint64_t duration, std::uint32_t columns,
                          const Pack& pack) {
  Json out = Json::array();
  if (columns > kOverviewColumns) {
    out.push_back(pack(thin(data, Columns{duration, kOverviewColumns})));
    out.back()["step"] = Columns{duration, kOverviewColumns}.width();
  }
  out.push_back(pack(data));
  out.back()["step"] = 0;
  return out;
}

[[nodiscard]] Json packed(const std::vector<BlockLife>& lives, Texts& texts) {
  std::vector<Column> columns(9);
  for (const BlockLife& life : lives) {
    const Block& block = life.block;
    const std::array<std::uint64_t, 9> row{block.begin,
                                           life.end - block.begin,
                                           block.bytes,
                                           block.requested,
                                           texts.of(block.name),
                                           texts.of(block.site),
                                           texts.of(block.kind),
                                           block.batch,
                                           block.from_before ? 1U : 0U};
    append_row<std::uint64_t>(columns, row);
  }
  return packed(columns);
}

[[nodiscard]] Json packed(const std::vector<Moment>& moments) {
  std::vector<Column> columns(3);
  for (const Moment& moment : moments) {
    append_row<std::uint64_t>(columns, std::array{moment.time, moment.blocks, moment.bytes});
  }
  return packed(columns);
}

// Describes a pool's fragmentation in one sentence.
[[nodiscard]] std::string unused_words(const MemoryPicture& pool, const ReportFigures& figures) {
  for (const PoolFigures& one : figures.pools) {
    if (!pool.driver && one.peaks.source == pool.source) {
      const Fragmentation& unused = one.fragmentation;
      return "Fragmentation " + format_share(unused.at_peak) +
             " (1 − peak allocated / peak reserved), " + format_share(unused.held_at_peak) +
             " without what awaited the device. On average " + format_share(unused.mean) +
             " of the reserved bytes were not allocated, and " + format_share(unused.waste) +
             " of the allocated ones were lost to rounding. At most " +
             format_amount(unused.most_unused) +
             " was not allocated. The picture leaves out what awaited the device.";
    }
  }
  return "";
}

[[nodiscard]] Json memory_json(const MemoryPicture& pool, const ProcessPicture& picture,
                               Texts& texts) {
  Json out;
  out["name"] = shorten(pool.name, kLongestName);
  out["host"] = pool.host;
  out["driver"] = pool.driver;
  out["budget"] = pool.budget;
  out["peak"] = pool.peak;
  out["peak_time"] = pool.peak_time;
  out["source"] = pool.source;
  out["unused"] = unused_words(pool, picture.figures);
  Json keys = Json::array();
  for (const auto& keying : pool.keys) {
    Json names = Json::array();
    for (const std::uint32_t key : keying) {
      names.push_back(texts.of(key));
    }
    keys.push_back(std::move(names));
  }
  out["keys"] = std::move(keys);
  out["levels"] = levels(pool.series, picture.duration, picture.detail.memory.columns,
                         [](const Series& series) { return packed(series); });
  out["largest"] = picture.detail.memory.largest;
  out["blocks"] = packed(pool.lives, texts);
  out["moments"] = packed(pool.moments);
  return out;
}

[[nodiscard]] Json activity_json(const ProcessPicture& picture, Texts& texts) {
  Json out = Json::array();
  for (const ActivityRow& row : picture.activity.rows) {
    Json one;
    one["kind"] = static_cast<int>(row.kind);
    one["name"] = shorten(row.name, kLongestName);
    one["busy"] = row.busy;
    one["levels"] = levels(row.runs, picture.duration, picture.detail.row_columns,
                           [&texts](const std::vector<Run>& runs) { return packed(runs, texts); });
    out.push_back(std::move(one));
  }
  return out;
}

// Returns the pool that the summary describes.
[[nodiscard]] std::size_t main_of(const ProcessPicture& picture) {
  const std::vector<MemoryPicture>& pools = picture.pools;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (!pools[i].driver && pools[i].name == picture.figures.summary.pool) {
      return i;
    }
  }
  return 0;
}

[[nodiscard]] Json process_json(const ProcessPicture& picture) {
  Texts texts(*picture.process);
  Json out = tables_of(picture.figures);
  out["main_pool"] = main_of(picture);
  out["duration"] = picture.duration;
  Json pools = Json::array();
  for (const MemoryPicture& pool : picture.pools) {
    pools.push_back(memory_json(pool, picture, texts));
  }
  out["pools"] = std::move(pools);
  out["lanes"] = activity_json(picture, texts);
  out["lanes_left_out"] = picture.activity.left_out;
  out["batches"] = levels(picture.batches, picture.duration, picture.detail.row_columns,
                          [](const Series& series) { return packed(series); });
  out["texts"] = texts.take();
  return out;
}

[[nodiscard]] std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Returns a line for each process, and one for all if there are several.
[[nodiscard]] Json overview_json(const std::vector<Summary>& summaries) {
  Json out = Json::array();
  if (summaries.size() > 1) {
    for (const std::string& line : in_words(summaries)) {
      out.push_back(shorten(line, 4 * kLongestName));
    }
  }
  return out;
}

}  // namespace

std::string escape_json(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = std::string_view(json).substr(i, 3);
    if (rest == "\u2028" || rest == "\u2029") {
      out += rest.back() == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (json[i] == '<') {
      out += "\\u003c";
    } else if (json[i] == '>') {
      out += "\\u003e";
    } else if (json[i] == '&') {
      out += "\\u0026";
    } else {
      out += json[i];
    }
  }
  return out;
}

std::string page_data(const Timeline& timeline, std::size_t max_bytes, const Detail& detail) {
  std::vector<ProcessPicture> pictures;
  std::vector<Summary> summaries;
  for (const Process& process : timeline.processes) {
    pictures.push_back(draw(process, detail));
    summaries.push_back(pictures.back().figures.summary);
  }
  const Json overview = overview_json(summaries);
  while (true) {
    Json processes = Json::array();
    std::uint32_t columns = 0;
    for (const ProcessPicture& picture : pictures) {
      processes.push_back(process_json(picture));
      columns = std::max(columns, picture.detail.memory.columns);
    }
    Json all;
    all["overview"] = overview;
    all["processes"] = std::move(processes);
    std::string text = escape_json(text_of(all));
    if (text.size() <= max_bytes || columns <= kLeastColumns) {
      return text;
    }
    for (ProcessPicture& picture : pictures) {
      coarsen(picture);
    }
  }
}

namespace {

void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80U));
    value >>= 7U;
  }
  out.push_back(static_cast<char>(value));
}

[[nodiscard]] std::uint64_t zigzag(std::uint64_t difference) {
  const std::uint64_t sign = (difference >> 63U) != 0 ? ~std::uint64_t{0} : 0;
  return (difference << 1U) ^ sign;
}

[[nodiscard]] std::string deflate(std::string_view bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(size, '\0');
  // zlib's types are unsigned char and unsigned long.
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()),
                6) != Z_OK) {
    throw std::bad_alloc();
  }
  out.resize(size);
  return out;
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view part = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8U | (k < part.size() ? static_cast<unsigned char>(part[k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out.push_back(k <= part.size() ? kDigits[bits >> (18U - 6U * k) & 0x3FU] : '=');
    }
  }
  return out;
}

std::string pack(std::span<const std::vector<std::int64_t>> columns) {
  std::string raw;
  for (const std::vector<std::int64_t>& column : columns) {
    std::uint64_t before = 0;
    for (const std::int64_t value : column) {
      append_varint(raw, zigzag(static_cast<std::uint64_t>(value) - before));
      before = static_cast<std::uint64_t>(value);
    }
  }
  return base64(deflate(raw));
}

}  // namespace weir::timeline
