// Quantities as a person writes and reads them: "64MiB", "400Gbps", "5us", "989TFLOPS".
//
// Reading takes a decimal number (1.5, 2e3) and, after optional spaces, a unit; a bare number is
// in SI base units (bytes, seconds, bytes/s, FLOP/s). Units are case-sensitive where case tells
// b (bit) from B (byte): GB/s, Gbps, Gb/s. Results must be finite and not negative. Bytes must be
// whole. parse_* returns nothing for anything else; accepted_* says what would have been read.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/base/units.h"

namespace stepsim {

std::optional<Bytes> parse_bytes(std::string_view text);
std::optional<Duration> parse_duration(std::string_view text);  // rounds to the next picosecond
std::optional<Bandwidth> parse_bandwidth(std::string_view text);
std::optional<Throughput> parse_throughput(std::string_view text);

// Describes accepted texts: "a size such as 64MiB, 1.5GB or 4096 (bytes)".
std::string_view accepted_bytes();
std::string_view accepted_duration();
std::string_view accepted_bandwidth();
std::string_view accepted_throughput();

// Three significant digits or more, with the unit a person would choose: "1.53 GB", "24.5 us".
std::string to_text(Bytes size);
std::string to_text(Duration duration);
std::string to_text(Bandwidth rate);
std::string to_text(Throughput rate);

// Seconds as an exact decimal with 12 fractional digits: "0.000001500000".
std::string exact_seconds(Duration duration);

}  // namespace stepsim
