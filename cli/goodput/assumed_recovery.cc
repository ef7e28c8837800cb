#include "cli/goodput/assumed_recovery.h"

#include <algorithm>

#include "goodput/checkpoint_times.h"
#include "proto/catalog/load_failures.h"
#include "sim/base/quantity_text.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {
namespace {

bool is_of_table(const GoodputRequest& request, const std::string& cluster) {
  const auto& published = request.table.published;
  if (!published || cluster.empty()) return false;
  return load_experiment({.experiment = published->experiment}).cluster.name == cluster;
}

// "2.00 TB/s" of a bandwidth's exact text, "2 min" of a time's; other values as they are.
std::string readable(const AnyField& field, const std::string& text) {
  const std::string accepted = field.accepts();
  if (accepted == Text<Bandwidth>::accepts()) return to_text(*Text<Bandwidth>::read(text));
  if (accepted == Text<Duration>::accepts()) return to_text(*Text<Duration>::read(text));
  return text;
}

// Adds the fields of a group that the table sets and the option does not.
template <class Policy>
void add_assumed_fields(const FieldTable<Policy>& fields, const Policy& policy,
                        const std::string& group, const std::vector<std::string>& given,
                        const std::string& table, std::vector<AssumedField>& assumed) {
  for (const FieldValue& value : fields.changed(policy)) {
    if (std::ranges::find(given, value.path) != given.end()) continue;
    assumed.push_back(
        {.field = group + "." + value.path,
         .value = readable(*fields.find(value.path), value.text),
         .why = "of " + table + "'s cluster; --" + group + " " + value.path + "= says yours"});
  }
}

// A node's way to storage, where nothing says it.
void add_unset_storage(const FailureTable& table, std::vector<AssumedField>& assumed) {
  const CheckpointPolicy& policy = table.checkpoint;
  if (!policy.has(CheckpointPlace::kStorage) || policy.flush) return;
  if (policy.stall || policy.node_storage_bandwidth) return;
  assumed.push_back({.field = "checkpoint.node_storage_bandwidth",
                     .value = to_text(kNodeStorage),
                     .why = "nothing says it; --checkpoint node_storage_bandwidth= does"});
}

}  // namespace

std::vector<AssumedField> assumed_recovery(const GoodputRequest& request,
                                           const std::string& cluster) {
  const FailureTable& table = request.table;
  std::vector<AssumedField> assumed;
  add_unset_storage(table, assumed);
  if (!request.table_is_of_catalog || is_of_table(request, cluster)) return assumed;
  add_assumed_fields(checkpoint_fields(), table.checkpoint, "checkpoint", request.checkpoint_keys,
                     table.name, assumed);
  add_assumed_fields(restart_fields(), table.restart, "restart", request.restart_keys, table.name,
                     assumed);
  if (!request.gives_spares) {
    assumed.push_back({.field = "spares",
                       .value = std::to_string(table.spares),
                       .why = "of " + table.name + "'s cluster; --spares says yours"});
  }
  if (!request.gives_repair) {
    assumed.push_back({.field = "class.repair",
                       .value = "as in the table",
                       .why = "of " + table.name + "'s operators; --repair says yours"});
  }
  return assumed;
}

}  // namespace stepsim
