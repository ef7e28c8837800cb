#include <algorithm>

#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_message.h"
#include "proto/catalog/serving_software.h"
#include "proto/software.pb.h"
#include "sim/base/field_text.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {
namespace {

constexpr std::string_view kNoSoftware = "none";

ServingSoftware read_software(const file::ServingSoftware& message, ProblemList& problems) {
  ServingSoftware software{
      .names = {message.name().begin(), message.name().end()},
      .engine = message.engine(),
      .decode_kernels = {message.decode_kernels().begin(), message.decode_kernels().end()},
      .expert_kernels = {message.expert_kernels().begin(), message.expert_kernels().end()}};
  const std::optional<Duration> front = Text<Duration>::read(message.front_time());
  if (!front) {
    problems.add(software.names.front() + ".front_time",
                 "must be a time, is \"" + message.front_time() + "\"");
  }
  software.front_time = front.value_or(Duration());
  for (const file::ServingLibrary& library : message.library()) {
    software.libraries.emplace(library.on(), library.name());
  }
  return software;
}

template <class Entry>
void prefer(const std::vector<std::string>& names, std::vector<Entry>& entries) {
  const auto rank = [&names](const Entry& entry) {
    return std::ranges::find(names, entry.library) - names.begin();
  };
  std::ranges::stable_sort(entries, {}, rank);
}

}  // namespace

std::vector<ServingSoftware> load_serving_software() {
  ProblemList problems;
  std::vector<ServingSoftware> all;
  const auto table = catalog_table<file::EngineReleaseTable>("engines", problems);
  for (const file::ServingSoftware& message : table.software()) {
    all.push_back(read_software(message, problems));
  }
  throw_if_any(problems.all());
  return all;
}

std::optional<ServingSoftware> find_serving_software(std::string_view name) {
  for (ServingSoftware& software : load_serving_software()) {
    if (std::ranges::count(software.names, name) > 0) return std::move(software);
  }
  return std::nullopt;
}

std::vector<std::string> serving_software_names() {
  std::vector<std::string> names;
  for (const ServingSoftware& software : load_serving_software()) {
    names.push_back(software.names.front());
  }
  return names;
}

std::optional<ServingSoftware> software_of(std::string_view name, std::string_view engine) {
  if (name == kNoSoftware) return std::nullopt;
  return find_serving_software(name.empty() ? engine : name);
}

void check_software_name(std::string_view name, std::vector<Problem>& problems) {
  if (name.empty() || name == kNoSoftware || find_serving_software(name)) return;
  std::vector<std::string> names = serving_software_names();
  names.emplace_back(kNoSoftware);
  problems.push_back({"--software", "must be " + either_of(names) + ", is \"" +
                                        shortened(std::string(name)) + "\""});
}

void prefer_kernels_of(const ServingSoftware& software, ServingKernels& kernels) {
  prefer(software.decode_kernels, kernels.decode);
  prefer(software.decode_kernels, kernels.latent_decode);
  prefer(software.expert_kernels, kernels.experts);
}

}  // namespace stepsim
