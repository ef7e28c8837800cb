#include "proto/catalog/catalog_reference.h"

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_message.h"
#include "proto/hugging_face/hugging_face.h"
#include "proto/messages/message_fields.h"

namespace stepsim {
namespace {

// Timings of a library replace those with the same path and protocol in the library that it is
// based on. The other timings stay.
void keep_other_timings(const file::Library& base, file::Library& changes) {
  if (changes.timing_size() == 0) return;
  file::Library kept;
  for (const file::ProtocolTiming& timing : base.timing()) {
    const auto replaces = [&timing](const file::ProtocolTiming& other) {
      return other.path() == timing.path() && other.protocol() == timing.protocol();
    };
    if (std::ranges::none_of(changes.timing(), replaces)) *kept.add_timing() = timing;
  }
  changes.mutable_timing()->MergeFrom(kept.timing());
}

// A chip with an attention kernel of its own does not train with the libraries of its sister.
void drop_attention_of_sister(const file::Chip& changes, file::Chip& base) {
  if (changes.efficiency().has_attention_forward_fraction()) {
    base.mutable_efficiency()->clear_attention_of();
  }
}

bool may_be_file(CatalogKind kind) {
  return kind == CatalogKind::kChip || kind == CatalogKind::kLibrary;
}

// Returns the entry of the catalog or the file with this name.
std::optional<SourceText> source_named(CatalogKind kind, const std::string& name,
                                       const std::string& field, bool is_in_file,
                                       ProblemList& problems) {
  if (may_be_file(kind) && looks_like_file(name)) {
    if (!is_in_file) return read_source(name, field, problems);
    problems.add(field,
                 "must be a name of the catalog in a file that is itself named by catalog, is \"" +
                     name + "\"");
    return std::nullopt;
  }
  CatalogAnswer answer = find(kind, name);
  if (!answer.found) problems.add(field, answer.problem);
  return std::move(answer.found);
}

// Puts `message` over the catalog entry that it names, if it names one. `is_in_file`: a file that
// another message names, so that files can't name each other without end.
template <typename Message>
bool resolve_catalog(Message& message, CatalogKind kind, const std::string& field,
                     ProblemList& problems, bool is_in_file = false) {
  if (!message.has_catalog()) return true;
  const std::string name = message.catalog();
  const auto source = source_named(kind, name, field + ".catalog", is_in_file, problems);
  if (!source) return false;
  const bool is_file = may_be_file(kind) && looks_like_file(name);
  Message base;
  if constexpr (requires { base.gated_mlp(); }) {
    if (read_catalog_model(*source, field + ".", message.as(), base, problems)) message.clear_as();
  } else if (!is_file) {
    read_catalog_message(*source, field + ".", base, problems);
  } else if (!read_message(*source, field + ".", base, problems)) {
    return false;  // what a syntax error in a user's file leaves out means nothing
  }
  // The entry that it is based on.
  if (!resolve_catalog(base, kind, field, problems, is_file)) return false;
  if constexpr (requires { base.name(); }) {
    if (!base.has_name()) base.set_name(is_file ? stem_of(name) : name);
  }
  message.clear_catalog();
  if constexpr (requires { base.timing(); }) keep_other_timings(base, message);
  if constexpr (requires { base.efficiency(); }) drop_attention_of_sister(message, base);
  put_over(base, message);
  message = std::move(base);
  return true;
}

// Gives a chip without serving kernels those of the chip that its other kernels are from.
void take_serving_kernels(file::Chip& chip, ProblemList& problems) {
  if (chip.has_serving() || !chip.has_kernel_constants_of()) return;
  const CatalogAnswer sister = find(CatalogKind::kChip, chip.kernel_constants_of());
  if (!sister.found) return;
  file::Chip other;
  read_catalog_message(*sister.found, "cluster.chip.", other, problems);
  if (other.has_serving()) *chip.mutable_serving() = other.serving();
}

// A folder of Hugging Face is named after its model: llama3-70b/config.json.
std::string model_name(const std::filesystem::path& path) {
  const std::filesystem::path named = path.filename() == "config.json" && path.has_parent_path()
                                          ? path.parent_path().filename()
                                          : path.stem();
  return named.empty() ? "config" : named.string();
}

}  // namespace

bool resolve(file::Model& model, const std::filesystem::path& folder, ProblemList& problems) {
  if (!model.has_huggingface()) {
    const bool found = resolve_catalog(model, CatalogKind::kModel, "model", problems);
    if (model.has_as()) {
      problems.add("model.as", "says how a config.json is read, but the model comes from none");
    }
    model.clear_as();
    return found;
  }
  if (model.has_catalog()) {
    problems.add("model.huggingface", "there can be only one start: catalog or huggingface");
    return false;
  }
  const std::filesystem::path path = config_of(folder / model.huggingface());
  const std::optional<SourceText> source =
      read_source(path.string(), "model.huggingface", problems);
  if (!source) return false;
  const std::size_t before = problems.size();
  file::Model base;
  read_hugging_face(*source, model.as(), base, problems);
  if (!base.has_layers()) return problems.size() == before;
  base.set_name(model_name(path));
  model.clear_huggingface();
  model.clear_as();
  put_over(base, model);
  model = std::move(base);
  return true;
}

bool resolve(file::Cluster& cluster, ProblemList& problems) {
  const bool found = resolve_catalog(cluster, CatalogKind::kCluster, "cluster", problems);
  bool all_found = found;
  if (cluster.has_chip()) {
    all_found =
        resolve_catalog(*cluster.mutable_chip(), CatalogKind::kChip, "cluster.chip", problems) &&
        all_found;
    take_serving_kernels(*cluster.mutable_chip(), problems);
  }
  if (!cluster.has_library() && cluster.chip().has_library()) {
    cluster.mutable_library()->set_catalog(cluster.chip().library());
  }
  if (cluster.has_library()) {
    all_found = resolve_catalog(*cluster.mutable_library(), CatalogKind::kLibrary,
                                "cluster.library", problems) &&
                all_found;
  }
  return all_found;
}

bool resolve(file::Plan& plan, ProblemList& problems) {
  return resolve_catalog(plan, CatalogKind::kPlan, "plan", problems);
}

}  // namespace stepsim
