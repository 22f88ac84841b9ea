#include "tests/standin/driver/copies/copy.hpp"

#include <cstring>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/memory/ranges.hpp"
#include "tests/standin/driver/streams/capture.hpp"
#include "tests/standin/driver/streams/stream.hpp"

namespace weir::standin {
namespace {

/// From the first byte of the first row to the last one of the last.
std::size_t span(const Copy& copy, std::size_t pitch) {
  return (copy.rows - 1) * pitch + copy.bytes;
}

bool fits(const Range& range, std::uintptr_t address, std::size_t bytes, Side side) {
  if (side == Side::kDevice && range.kind == RangeKind::kPageable) return false;
  if (side == Side::kHost && range.kind == RangeKind::kDevice) return false;
  return range.holds(address, bytes);
}

/// Moves rows and does not copy them: those of one copy may overlap.
void move_rows(const Copy& copy, const unsigned char* from) {
  auto* to = reinterpret_cast<unsigned char*>(copy.to);
  for (std::size_t row = 0; row < copy.rows; ++row) {
    std::memmove(to + row * copy.to_pitch, from + row * copy.from_pitch, copy.bytes);
  }
}

/// The operation of a copy. Reads pageable memory now.
Operation make_copy(const Copy& copy, bool staged) {
  const auto* from = reinterpret_cast<const unsigned char*>(copy.from);
  if (!staged) return {.work = [=] { move_rows(copy, from); }};
  auto read =
      std::make_shared<std::vector<unsigned char>>(from, from + span(copy, copy.from_pitch));
  return {.work = [=] { move_rows(copy, read->data()); }};
}

}  // namespace

CUresult do_copy(Call& call, CUstream handle, const Copy& copy, bool asynchronous) {
  const std::shared_ptr<Stream> stream = find_stream(call, handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (copy.bytes == 0 || copy.rows == 0) return CUDA_SUCCESS;
  if (copy.to == 0 || copy.from == 0) return CUDA_ERROR_INVALID_VALUE;
  const Range to = find_range(call.driver, copy.to);
  const Range from = find_range(call.driver, copy.from);
  if (!fits(to, copy.to, span(copy, copy.to_pitch), copy.to_side) ||
      !fits(from, copy.from, span(copy, copy.from_pitch), copy.from_side)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool to_pageable = to.kind == RangeKind::kPageable;
  const bool from_pageable = from.kind == RangeKind::kPageable;
  if (stream->capture && (to_pageable || from_pageable)) return refuse_capturing(*stream);
  Operation operation = make_copy(copy, from_pageable);
  touch(call.driver, copy.to, operation.touches);
  touch(call.driver, copy.from, operation.touches);
  const CUresult submitted = submit(call, stream, std::move(operation));
  if (submitted != CUDA_SUCCESS || stream->capture) return submitted;
  const bool in_device = to.kind == RangeKind::kDevice && from.kind == RangeKind::kDevice;
  end_launch(call, stream);
  if (to_pageable || (!asynchronous && !in_device)) wait_for(call, {{stream, stream->enqueued}});
  return call.context->broken;
}

}  // namespace weir::standin
