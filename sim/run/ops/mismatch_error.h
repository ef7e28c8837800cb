// MismatchError: ranks disagree about what they do together. Thrown while a run goes on.

#pragma once

#include <stdexcept>

namespace stepsim {

// A send and its receive differ in size, or members of a communicator issued different collectives:
// what() names both ranks and ops.
struct MismatchError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace stepsim
