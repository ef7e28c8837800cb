#include <algorithm>
#include <utility>

#include "import/aicb/aicb.h"
#include "import/chakra/chakra.h"
#include "import/deepspeed/deepspeed_import.h"
#include "import/goal/goal.h"
#include "import/htsim/htsim_topology.h"
#include "import/importer.h"
#include "import/input_bytes.h"
#include "import/llama_factory/llama_factory_import.h"
#include "import/maxtext/maxtext_import.h"
#include "import/megatron/megatron_import.h"
#include "import/ms_swift/ms_swift_import.h"
#include "import/msccl/msccl_import.h"
#include "import/nanotron/nanotron_import.h"
#include "import/nccl/nccl_import.h"
#include "import/nccl_topology/nccl_topology.h"
#include "import/nemo/nemo_import.h"
#include "import/ns3/ns3_topology.h"
#include "import/primus/primus_import.h"
#include "import/slurm/slurm_topology.h"
#include "import/torchtitan/torchtitan_import.h"
#include "import/trace/kineto_import.h"
#include "proto/hugging_face/import_model.h"

namespace stepsim {
namespace {

Imported import_hf(const ImportRequest& request) {
  Imported imported;
  imported.text = import_hugging_face(request.files[0], request.as);
  return imported;
}

Imported import_chakra(const ImportRequest& request) {
  std::vector<Problem> problems;
  const std::vector<std::string> files = files_of(request.files, ".et", problems);
  throw_if_any(problems);
  ImportedJob read =
      read_chakra(files, {.groups = request.groups, .ranks = request.ranks}, problems);
  throw_if_any(std::move(problems));
  Imported imported;
  imported.report = "schema " + (read.schema.empty() ? "not stated" : read.schema) + "\n";
  imported.facts["schema"] = read.schema;
  imported.notes = std::move(read.notes);
  imported.job = std::move(read.job);
  return imported;
}

std::string text_of_file(const std::string& path) {
  std::vector<Problem> problems;
  std::optional<std::string> text = read_bytes(path, problems);
  throw_if_any(std::move(problems));
  return std::move(*text);
}

Imported import_goal(const ImportRequest& request) {
  std::vector<Problem> problems;
  GoalJob read = read_goal(text_of_file(request.files[0]), request.files[0], problems);
  throw_if_any(std::move(problems));
  Imported imported;
  imported.notes = std::move(read.notes);
  imported.job = std::move(read.job);
  return imported;
}

Imported import_aicb(const ImportRequest& request) {
  std::vector<Problem> problems;
  AicbJob read =
      read_aicb(text_of_file(request.files[0]), request.files[0], request.ranks, problems);
  throw_if_any(std::move(problems));
  Imported imported;
  imported.notes = std::move(read.notes);
  imported.job = std::move(read.job);
  return imported;
}

// Trainers' settings become experiments, and take the same options.
Importer trainer(std::string_view kind, std::string_view files, std::string_view summary,
                 Imported (*read)(const ImportRequest& request)) {
  return {.kind = kind,
          .files = files,
          .summary = summary,
          .result = ImportResult::kExperiment,
          .most_files = 0,
          .options = {"ranks", "cluster", "chip", "library", "model", "set", "verbose"},
          .read = read};
}

// Networks become clusters.
Importer network(std::string_view kind, std::string_view files, std::string_view summary,
                 Imported (*read)(const ImportRequest& request),
                 std::vector<std::string_view> options = {"chip", "library"}) {
  return {.kind = kind,
          .files = files,
          .summary = summary,
          .result = ImportResult::kCluster,
          .options = std::move(options),
          .read = read};
}

const std::vector<Importer>& table() {
  static const std::vector<Importer> kTable = {
      {.kind = "hf",
       .files = "CONFIG.json | FOLDER",
       .summary = "a model of Hugging Face: a model file",
       .result = ImportResult::kModel,
       .options = {"as"},
       .read = import_hf},
      {.kind = "chakra",
       .files = "FILE.et.. | FOLDER",
       .summary = "Chakra execution traces, one a rank: a workload",
       .most_files = 0,
       .options = {"groups", "ranks"},
       .read = import_chakra},
      {.kind = "kineto",
       .files = "TRACE.json.. | FOLDER",
       .summary = "traces of PyTorch's profiler, one a rank: a workload",
       .most_files = 0,
       .options = {"ranks", "step"},
       .read = import_kineto},
      {.kind = "xplane",
       .files = "PROFILE.xplane.pb.. | FOLDER",
       .summary = "profiles of JAX and XLA: a workload",
       .most_files = 0,
       .options = {"ranks", "step"},
       .read = import_kineto},
      {.kind = "aicb",
       .files = "WORKLOAD.txt",
       .summary = "workloads of SimAI and AICB: a workload",
       .options = {"ranks"},
       .read = import_aicb},
      {.kind = "goal",
       .files = "SCHEDULE.goal",
       .summary = "schedules of LogGOPSim: a workload",
       .read = import_goal},
      {.kind = "nccl-tests",
       .files = "LOG",
       .summary = "logs of nccl-tests: a table of collectives",
       .result = ImportResult::kTable,
       .options = {"op", "hardware", "ranks"},
       .read = import_nccl_tests},
      network("nccl-topology", "TOPOLOGY.xml", "what NCCL_TOPO_DUMP_FILE writes: a cluster",
              import_nccl_topology, {"chip", "library", "ranks"}),
      network("slurm-topology", "topology.conf", "switches or blocks of Slurm: a cluster",
              import_slurm_topology, {"chip", "library", "cluster", "ranks"}),
      network("ns3-topology", "TOPOLOGY.txt", "networks of HPCC, SimAI and astra-sim: a cluster",
              import_ns3_topology),
      network("htsim-topology", "TOPOLOGY.topo", "fat trees of htsim: a cluster",
              import_htsim_topology),
      {.kind = "msccl",
       .files = "ALGORITHM.xml",
       .summary = "algorithms of MSCCL: an algorithm of stepsim collective",
       .result = ImportResult::kAlgorithm,
       .read = import_msccl},
      trainer("megatron", "LOG | SCRIPT | FLAGS [KEY=VALUE..]",
              "arguments of Megatron-LM: an experiment", import_megatron),
      trainer("torchtitan", "CONFIG.toml | CONFIG.json [KEY=VALUE..]",
              "settings of torchtitan: an experiment", import_torchtitan),
      trainer("maxtext", "CONFIG.yml.. | SCRIPT [KEY=VALUE..]",
              "settings of MaxText: an experiment", import_maxtext),
      trainer("nemo", "CONFIG.yaml [KEY=VALUE..]",
              "settings of NeMo and Megatron Bridge: an experiment", import_nemo),
      trainer("deepspeed", "DS_CONFIG.json [MODEL_FOLDER] [KEY=VALUE..]",
              "settings of DeepSpeed, and a model: an experiment", import_deepspeed),
      trainer("llama-factory", "CONFIG.yaml [DS_CONFIG.json] [KEY=VALUE..]",
              "settings of LLaMA-Factory: an experiment", import_llama_factory),
      trainer("ms-swift", "SCRIPT | CONFIG.yaml [DS_CONFIG.json] [KEY=VALUE..]",
              "commands of ms-swift: an experiment", import_ms_swift),
      trainer("primus", "EXPERIMENT.yaml [MODEL.yaml..] [KEY=VALUE..]",
              "settings of Primus: an experiment", import_primus),
      trainer("nanotron", "CONFIG.yaml [KEY=VALUE..]", "settings of Nanotron: an experiment",
              import_nanotron),
  };
  return kTable;
}

}  // namespace

std::span<const Importer> importers() {
  return table();
}

const Importer* find_importer(std::string_view kind) {
  const auto found = std::ranges::find(table(), kind, &Importer::kind);
  return found == table().end() ? nullptr : &*found;
}

}  // namespace stepsim
