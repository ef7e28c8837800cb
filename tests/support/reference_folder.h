// The locations of the data of tests/reference/ and tests/fuzz/corpus/.

#pragma once

#include <filesystem>

namespace stepsim {

std::filesystem::path reference_folder();
std::filesystem::path fuzz_corpus_folder();

}  // namespace stepsim
