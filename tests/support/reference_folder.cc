#include "tests/support/reference_folder.h"

namespace stepsim {

std::filesystem::path reference_folder() {
  return STEPSIM_REFERENCE_FOLDER;
}

}  // namespace stepsim
