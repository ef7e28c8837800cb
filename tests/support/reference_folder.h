// Where the data of tests/reference/ lie.

#pragma once

#include <filesystem>

namespace stepsim {

std::filesystem::path reference_folder();

}  // namespace stepsim
