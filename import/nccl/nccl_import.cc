#include "import/nccl/nccl_import.h"

#include <fmt/format.h>

#include <utility>

#include "import/input_bytes.h"
#include "measured/nccl_log.h"
#include "sim/base/shown_text.h"

namespace stepsim {
namespace {

void append_record(std::string& text, const std::vector<std::string>& record) {
  for (std::size_t i = 0; i < record.size(); ++i) {
    if (i > 0) text += ',';
    text += csv_cell(record[i]);
  }
  text += '\n';
}

}  // namespace

Imported import_nccl_tests(const ImportRequest& request) {
  std::vector<Problem> problems;
  const std::string& path = request.files[0];
  const std::optional<std::string> text = read_bytes(path, problems);
  throw_if_any(problems);
  const NcclLog log = read_nccl_log(*text);
  for (const Problem& problem : log.problems) {
    problems.push_back(
        {problem.field.empty() ? path : path + ":" + problem.field, problem.message});
  }
  LogFacts facts{.op = request.op, .hardware = request.hardware};
  if (request.ranks > 0) facts.ranks = request.ranks;
  const CsvTable table = table_of(log, path, facts, load_hardware(), problems);
  throw_if_any(std::move(problems));
  Imported imported;
  append_record(imported.text, table.header);
  for (const auto& record : table.records) append_record(imported.text, record);
  imported.facts["rows"] = table.records.size();
  if (!log.rows.empty() && !log.rows[0].nodes) {
    imported.notes.emplace_back("the log does not say on how many nodes it ran: one is written");
  }
  return imported;
}

}  // namespace stepsim
