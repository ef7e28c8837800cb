#include <algorithm>
#include <utility>

#include "import/chakra/chakra.h"
#include "import/importer.h"
#include "import/input_bytes.h"
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
