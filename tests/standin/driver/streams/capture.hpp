#pragma once

// The rules of stream capture: what it refuses and what breaks it.

#include "tests/standin/driver/driver.hpp"

namespace weir::standin {

/// For calls that are unsafe during a capture: returns success, or an error, which also breaks the
/// captures that forbid the call.
CUresult refuse_unsafe(Driver& driver);
/// For work on the legacy stream while a blocking stream is capturing: returns success, or an
/// error, which also breaks the capture if `breaks`.
CUresult check_implicit(Call& call, const Stream& stream, bool breaks = true);
/// If the stream is capturing, breaks the capture and returns an error.
CUresult refuse_capturing(const Stream& stream);
/// The same for calls about all streams of the current context.
CUresult refuse_capturing_context(Call& call);

CUresult add_to_capture(Stream& stream, Node node);
/// Makes `stream`, capturing or not, wait for `event`, which was recorded in a capture.
CUresult wait_in_capture(const std::shared_ptr<Stream>& stream, const Event& event);
/// Ends the capture, however it went, and returns its graph. The caller holds the capture: its
/// streams drop it.
Graph end_capture(Driver& driver, const std::shared_ptr<Capture>& capture);
/// The handle of the graph that the capture adds to; null if that was destroyed.
CUgraph graph_of(Driver& driver, Capture& capture);
/// Destroys the graph that was made for a failed capture.
void drop_new_graph(Driver& driver, Capture& capture);
/// `stream` is destroyed: breaks its capture, if there is one, and ends the one that it began.
void leave_capture(Driver& driver, Stream& stream);

}  // namespace weir::standin
