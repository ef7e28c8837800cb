// How many processes mpirun or srun started together.

#pragma once

#include <cstddef>

namespace stepsim {

// Returns 1 if this process is alone. Open MPI, MPICH, and Slurm with PMI say it in the
// environment.
std::size_t started_processes();

}  // namespace stepsim
