// The golden schedules of tests/reference/schedules: their requests, their orders, and their times.

#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/schedule_file.h"
#include "tests/support/reference_folder.h"

namespace stepsim {

struct GoldenSchedule {
  ScheduleRequest request{};
  bool is_optimum = false;  // optimum of the integer programme: one of many equal orders
  std::string planned_for{};
  nlohmann::json json{};

  std::string title() const {
    return std::string(name_of(request.name)) + " P=" + std::to_string(request.stages) +
           " M=" + std::to_string(request.microbatches) +
           " V=" + std::to_string(request.chunks.value_or(1)) + " " + planned_for;
  }
  // The order in the file.
  PipelineSchedule order() const {
    const std::string placement = json["placement"];
    std::string text = "placement: " + (placement == "bidir"    ? "bidirectional"
                                        : placement == "single" ? "loop"
                                                                : placement);
    for (const auto& rank : json["per_rank"]) text += "\n" + rank.get<std::string>();
    return parse_schedule(text);
  }
};

inline const std::map<std::string, PipelineCosts>& golden_costs() {
  static const std::map<std::string, PipelineCosts> kCosts = {
      {"unit_c0", {1, 1, 1, 0}}, {"f10b12w8_c0", {10, 12, 8, 0}}, {"f10b12w8_c1", {10, 12, 8, 1}}};
  return kCosts;
}

inline std::vector<GoldenSchedule> golden_schedules() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(reference_folder() / "schedules")) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<GoldenSchedule> cases;
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      GoldenSchedule golden;
      golden.json = nlohmann::json::parse(line);
      const nlohmann::json& json = golden.json;
      std::string name = json["schedule"];
      golden.is_optimum = name.starts_with("zb_ilp_");
      if (golden.is_optimum) name.replace(0, 7, "zb_auto_");
      golden.planned_for = json.value("planned_for", "");
      golden.request = {.name = schedule_named(name).value(),
                        .stages = json["stages"],
                        .microbatches = json["microbatches"],
                        .chunks = json["chunks"].get<std::int64_t>()};
      if (json.contains("microbatch_group")) {
        golden.request.microbatch_group = json["microbatch_group"].get<std::int64_t>();
      }
      if (!golden.planned_for.empty()) {
        golden.request.costs = golden_costs().at(golden.planned_for);
      }
      cases.push_back(std::move(golden));
    }
  }
  return cases;
}

}  // namespace stepsim
