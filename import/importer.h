// Importer reads files of other software: one row of a table and one pair of files a format. To add
// one, write import/FORMAT/FORMAT.h and .cc and give it a row in import/importer_table.cc;
// `stepsim import`, its help and its fuzz target follow from the row (docs/import.md).

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/trace_job.h"
#include "proto/messages/json_value.h"
#include "sim/base/error.h"

namespace stepsim {

// ImportRequest is what a person says beside the files. Each row takes some of it.
struct ImportRequest {
  std::vector<std::string> files{};
  std::string as{};         // hf: the family
  std::string groups{};     // chakra: comm_group.json
  std::uint32_t ranks = 0;  // one file stands for so many; 0: not given
  std::string op{};         // nccl-tests: of a log that does not say
  std::string hardware{};
  std::optional<std::uint32_t> step{};  // kineto: number of the step; unset: the median one
  // Trainers: where the job runs, and fields that go over what was read (--set). Networks: the
  // chip, the library, and whose nodes stand on it.
  std::string cluster{};
  std::string chip{};
  std::string library{};
  std::string model{};  // a model of the catalog or a file, for settings without one
  std::vector<std::string> sets{};
  bool verbose = false;
  // An export that is read again gives its text here, not in a file, and runs on the cluster of
  // this record of an experiment (proto/experiment_record.h).
  std::string text{};
  std::string cluster_record{};
};

enum class ImportResult : std::uint8_t {
  kModel,       // a model file of stepsim
  kExperiment,  // an experiment file
  kCluster,     // a cluster file
  kAlgorithm,   // a collective algorithm, step by step
  kTable,       // CSV
  kJob,         // the work of a trace, which can be replayed
};

struct Imported {
  std::string text;                // what is printed or written; empty for a job
  std::optional<TraceJob> job{};   // kJob
  std::string report{};            // kJob: what it is, for people
  std::vector<std::string> notes;  // what could not be told, or has no counterpart
  Json facts = Json::object();     // --json
};

struct Importer {
  std::string_view kind;     // "chakra"
  std::string_view files;    // "FILE.et.. | FOLDER"
  std::string_view summary;  // one line
  ImportResult result = ImportResult::kJob;
  std::size_t most_files = 1;               // 0: any number
  std::vector<std::string_view> options{};  // of ImportRequest that it takes: "groups"
  Imported (*read)(const ImportRequest& request) = nullptr;  // throws ConfigError
};

std::span<const Importer> importers();
const Importer* find_importer(std::string_view kind);  // nullptr: there is none

// Returns what a job is: ranks, nodes by kind, collectives by operation.
std::string job_report(const TraceJob& job);
Json job_facts(const TraceJob& job);

}  // namespace stepsim
