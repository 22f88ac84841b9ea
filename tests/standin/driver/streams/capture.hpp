#pragma once

// The rules of stream capture: what is refused while one is under way, and what breaks it.

#include "tests/standin/driver/driver.hpp"

namespace weir::standin {

/// For calls that are unsafe during a capture: an error, which also breaks the captures that forbid
/// it, or success.
CUresult refuse_unsafe(Driver& driver);
/// For work on the legacy stream while a blocking stream is capturing: an error, which also breaks
/// the capture when `breaks`, or success.
CUresult check_implicit(Call& call, const Stream& stream, bool breaks = true);
/// An error, and the end of the capture's hopes, when the stream is capturing.
CUresult refuse_capturing(const Stream& stream);
/// The same for whoever asks for all streams of the current context.
CUresult refuse_capturing_context(Call& call);

CUresult add_to_capture(Stream& stream, Node node);
/// `stream`, capturing or not, is to wait for `event`, which was recorded in a capture.
CUresult wait_in_capture(const std::shared_ptr<Stream>& stream, const Event& event);
/// The capture is over, however it went, and this is what came of it. The caller holds the capture:
/// its streams let go of it.
Graph end_capture(Driver& driver, const std::shared_ptr<Capture>& capture);
/// The handle of the graph that the capture adds to; null where that was destroyed.
CUgraph graph_of(Driver& driver, Capture& capture);
/// The capture failed: the graph that was made for it goes.
void drop_new_graph(Driver& driver, Capture& capture);
/// `stream` goes away: breaks its capture, if there is one, and ends the one that it began.
void leave_capture(Driver& driver, Stream& stream);

}  // namespace weir::standin
