// Reads RMM's log in the format of its logging_resource_adaptor:
// Thread,Time,Action,Pointer,Size,Stream.

#include <string>
#include <unordered_set>

#include "tools/program/table.hpp"
#include "tools/replay/read/readers.hpp"

namespace weir::replay {
namespace {

/// The fields that matter. Thread and time do not, since the lines are in order.
struct RmmLine {
  std::string_view action;
  std::uint64_t pointer;
  Bytes size;
  std::uint64_t stream;
};

class RmmReader {
 public:
  RmmReader(const std::string& name, const Csv& csv)
      : action_(*csv.column("Action")),
        pointer_(*csv.column("Pointer")),
        size_(csv.column("Size")),
        stream_(csv.column("Stream")),
        builder_(name) {}

  void take(const std::vector<std::string_view>& fields) {
    const RmmLine line{
        .action = fields[action_],
        .pointer = hexadecimal_in(fields[pointer_], "the pointer"),
        .size = {number_in(fields[*size_], "the size")},
        // Handles in hexadecimal; early versions wrote 0 for the default stream.
        .stream = stream_ ? hexadecimal_in(fields[*stream_], "the stream") : 0,
    };
    if (line.action == "allocate") {
      allocate(line);
    } else if (line.action == "free") {
      free(line);
    } else if (line.action == "allocate failure") {
      ++failures_;
    } else {
      throw Malformed("the action is " + shown_text(line.action) +
                      ": allocate, free or allocate failure is expected");
    }
  }

  [[nodiscard]] Trace finish(std::string cut) {
    Trace trace = builder_.finish();
    trace.cut = std::move(cut);
    if (failures_ != 0) {
      trace.notes.push_back(format_count(failures_, "allocation") +
                            " failed in the recording: skipped");
    }
    if (empty_ != 0) {
      trace.notes.push_back(format_count(empty_, "allocation") + " of 0 bytes: skipped");
    }
    return trace;
  }

 private:
  /// A request of 0 bytes takes no memory. Its pointer may be null or equal another buffer's.
  void allocate(const RmmLine& line) {
    if (line.size.count != 0) {
      live_.allocate(line.pointer, line.size, line.stream);
    } else {
      ++empty_;
    }
  }
  void free(const RmmLine& line) {
    if (line.size.count != 0) live_.free(line.pointer, line.size, line.stream);
  }

  std::size_t action_;
  std::size_t pointer_;
  std::optional<std::size_t> size_;
  std::optional<std::size_t> stream_;
  TraceBuilder builder_;
  LiveAddresses live_{builder_};
  std::uint64_t failures_ = 0;
  std::uint64_t empty_ = 0;
};

}  // namespace

bool is_rmm_log(const Csv& csv) {
  return csv.column("Action") && csv.column("Pointer") && csv.column("Size");
}

Trace read_rmm_log(const std::string& name, Csv& csv) {
  RmmReader reader(name, csv);
  csv.for_each([&](const std::vector<std::string_view>& fields) { reader.take(fields); });
  return reader.finish(csv.cut());
}

}  // namespace weir::replay
