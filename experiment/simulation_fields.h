// The table of the fields that say how an experiment is simulated (ExperimentOptions): the section
// `simulation` of a file, and the options of `stepsim run` with the same names.

#pragma once

#include <cstddef>
#include <vector>

#include "experiment/simulate_experiment.h"
#include "sim/base/error.h"
#include "sim/fields/field.h"

namespace stepsim {

template <>
inline constexpr std::size_t kValuesOf<Fidelity> = 3;
template <>
inline constexpr std::size_t kValuesOf<Granularity> = 2;
template <>
inline constexpr std::size_t kValuesOf<Switching> = 2;
template <>
inline constexpr std::size_t kValuesOf<AttentionFlops> = 2;

const FieldTable<ExperimentOptions>& simulation_fields();

// Returns true for a field that acts on runs with packets only: "packet_bytes", "switching", ...
bool acts_on_packets(const AnyField& field);

// Returns the problems between fields, under the fields' names. One is a queue ("buffer_bytes")
// that can't hold a packet.
std::vector<Problem> check_simulation(const ExperimentOptions& options);

}  // namespace stepsim
