#include "cli/processes/started_processes.h"

#include <cstdint>
#include <cstdlib>

#include "sim/base/field_text.h"

namespace stepsim {

std::size_t started_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const text = std::getenv(name);
    if (text == nullptr) continue;
    return static_cast<std::size_t>(number_in<std::uint32_t>(text).value_or(1));
  }
  const char* const tasks = std::getenv("SLURM_NTASKS");  // srun --mpi=pmix
  const bool has_pmix = std::getenv("PMIX_RANK") != nullptr;
  if (tasks == nullptr || !has_pmix) return 1;
  return static_cast<std::size_t>(number_in<std::uint32_t>(tasks).value_or(1));
}

}  // namespace stepsim
