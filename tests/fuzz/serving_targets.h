// Fuzz targets of `stepsim serve`: what is read and small is also served.

#pragma once

#include <string_view>

namespace stepsim {

void read_serving_cases(std::string_view input);     // a file of scheduler cases
void read_serving_requests(std::string_view input);  // a CSV of requests
void read_serve_words(std::string_view input);       // words behind `stepsim serve`, a line each

}  // namespace stepsim
