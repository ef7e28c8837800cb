// Fuzz targets: the readers of `stepsim import`.

#pragma once

#include <string>
#include <string_view>

namespace stepsim {

void read_chakra_trace(std::string_view input);
void read_import_job(std::string_view input);
void read_astra_files(std::string_view input);
void read_kineto_trace(std::string_view input);
void read_xla_profile(std::string_view input);
void read_goal_schedule(std::string_view input);
void read_aicb_workload(std::string_view input);
void read_msccl_algorithm(std::string_view input);
// Settings of a trainer, and networks, by the kind of `stepsim import`. `model`: --model.
void read_trainer(std::string_view kind, std::string_view input, std::string_view extension,
                  const std::string& model = "");
void read_network(std::string_view kind, std::string_view input);

}  // namespace stepsim
