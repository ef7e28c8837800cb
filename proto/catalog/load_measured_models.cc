#include <optional>

#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_message.h"
#include "proto/catalog/catalog_reference.h"
#include "proto/catalog/measured_tables.h"
#include "proto/measured_model.pb.h"
#include "proto/to_spec.h"

namespace stepsim {
namespace {

std::optional<ModelSpec> sizes_of(const file::MeasuredModel& entry, ProblemList& problems) {
  if (!entry.has_sizes()) return std::nullopt;
  file::Model sizes = entry.sizes();
  if (!resolve(sizes, {}, problems)) return std::nullopt;
  return to_model(sizes, problems);
}

}  // namespace

std::vector<MeasuredModel> load_measured_models() {
  ProblemList problems;
  std::vector<MeasuredModel> table;
  for (const SourceText& source : catalog_tables("measured")) {
    file::MeasuredModelTable message;
    read_catalog_message(source, "", message, problems);
    for (const file::MeasuredModel& entry : message.model()) {
      MeasuredModel& model = table.emplace_back();
      model.names.assign(entry.name().begin(), entry.name().end());
      model.latent = {.q_rank = entry.latent().q_rank(),
                      .kv_rank = entry.latent().kv_rank(),
                      .nope_dim = entry.latent().nope_dim(),
                      .rope_dim = entry.latent().rope_dim(),
                      .v_dim = entry.latent().v_dim()};
      model.first_dense = entry.first_dense();
      model.shared_experts = entry.shared_experts();
      model.attention_sinks = entry.attention_sinks();
      model.sizes = sizes_of(entry, problems);
    }
  }
  throw_if_any(problems.all());
  return table;
}

std::vector<ModelSpec> load_catalog_models() {
  ProblemList problems;
  std::vector<ModelSpec> models;
  for (const std::string& name : list(CatalogKind::kModel)) {
    file::Model message;
    message.set_catalog(name);
    if (resolve(message, {}, problems)) models.push_back(to_model(message, problems));
  }
  throw_if_any(problems.all());
  return models;
}

}  // namespace stepsim
