#pragma once

/// Allocates and frees some hundred times by the driver's own functions, and checks that the driver
/// saw all of it ("passed") or hardly any ("served"). `how` selects how they are found: see
/// use_driver.cpp. Returns 0, 1 with a line about the difference, or 2 for unknown words.
extern "C" int use_driver(const char* how, const char* expected);
