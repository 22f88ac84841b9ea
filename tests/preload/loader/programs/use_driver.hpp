#pragma once

/// Allocates and frees some hundred times by the driver's own functions, and checks that the driver
/// saw all of it ("passed") or hardly any ("served"). `how` says how they are found: see
/// use_driver.cpp. 0, or 1 and a line that says what is not so; 2 for words that it does not know.
extern "C" int use_driver(const char* how, const char* expected);
