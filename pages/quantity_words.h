// Numbers of a result in the words of a page: four significant digits and the unit that a person
// would choose, with the exact value behind them. Values that are not finite are shown as a dash.

#pragma once

#include <string>
#include <string_view>

#include "pages/html_page.h"

namespace stepsim {

// `key`: where the result has the number (Shown::key).
Shown shown_seconds(double seconds, std::string key = {});
Shown shown_bytes(double bytes, std::string key = {});
Shown shown_energy(double joules, std::string key = {});     // "1.25 MWh"
Shown shown_percent(double fraction, std::string key = {});  // the value stays the fraction
Shown shown_number(double number, std::string key = {});     // "460,365"
Shown shown_rate(double per_second, std::string_view unit,
                 std::string key = {});                     // "989.4 TFLOP/s"
Shown shown_change(double fraction, std::string key = {});  // "+4.2 %"

// Returns a name of the JSON as words: "gathered_parameters" is "gathered parameters".
std::string words_of_key(std::string_view key);

}  // namespace stepsim
