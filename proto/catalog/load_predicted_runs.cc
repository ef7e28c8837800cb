#include <sstream>

#include "proto/catalog/catalog.h"
#include "proto/catalog/measured_tables.h"

namespace stepsim {
namespace {

// Reads "group;source;measured;predicted", as scripts/write_accuracy_docs.py writes it.
PredictedRun predicted_run(const std::string& line) {
  std::istringstream fields(line);
  PredictedRun run;
  char semicolon = 0;
  std::getline(fields, run.group, ';');
  std::getline(fields, run.source, ';');
  fields >> run.measured_s >> semicolon >> run.predicted_s;
  return run;
}

}  // namespace

std::vector<PredictedRun> load_predicted_runs() {
  std::vector<PredictedRun> runs;
  for (const SourceText& source : catalog_tables("predictions")) {
    std::istringstream lines(source.text);
    std::string line;
    std::getline(lines, line);  // the header
    while (std::getline(lines, line)) runs.push_back(predicted_run(line));
  }
  return runs;
}

}  // namespace stepsim
