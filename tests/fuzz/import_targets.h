// Fuzz targets: the readers of `stepsim import`.

#pragma once

#include <string_view>

namespace stepsim {

void read_chakra_trace(std::string_view input);
void read_import_job(std::string_view input);
void read_astra_files(std::string_view input);
void read_kineto_trace(std::string_view input);
void read_goal_schedule(std::string_view input);
void read_aicb_workload(std::string_view input);
void read_nccl_topology(std::string_view input);
void read_slurm_topology(std::string_view input);
void read_ns3_topology(std::string_view input);
void read_htsim_topology(std::string_view input);
void read_msccl_algorithm(std::string_view input);
void read_megatron_arguments(std::string_view input);
void read_torchtitan_settings(std::string_view input);
void read_maxtext_settings(std::string_view input);
void read_nemo_settings(std::string_view input);
void read_llama_factory_settings(std::string_view input);
void read_ms_swift_command(std::string_view input);
void read_primus_settings(std::string_view input);
void read_nanotron_settings(std::string_view input);
void read_deepspeed_settings(std::string_view input);

}  // namespace stepsim
