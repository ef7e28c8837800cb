// The location of the data of tests/reference/.

#pragma once

#include <filesystem>

namespace stepsim {

std::filesystem::path reference_folder();

}  // namespace stepsim
