#include "tests/support/reference_folder.h"

namespace stepsim {

std::filesystem::path reference_folder() {
  return STEPSIM_REFERENCE_FOLDER;
}

std::filesystem::path fuzz_corpus_folder() {
  return reference_folder().parent_path() / "fuzz" / "corpus";
}

}  // namespace stepsim
