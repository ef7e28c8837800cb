#include "sim/run/simulation_result.h"

namespace stepsim {

Duration Breakdown::sum() const {
  Duration total = compute + bubble + idle + launch;
  for (const Duration part : exposed_communication) total += part;
  return total;
}

}  // namespace stepsim
