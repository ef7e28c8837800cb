// Fuzz targets of measured tables: rows beyond the syntax of CSV.

#pragma once

#include <string_view>

namespace stepsim {

void read_measured_rows(
    std::string_view input);  // collectives and kernels; small ones are predicted
void read_carbon_table(std::string_view input);  // of stepsim goodput --carbon
void read_nccl_tests(std::string_view input);    // a log, which becomes a table of collectives

}  // namespace stepsim
