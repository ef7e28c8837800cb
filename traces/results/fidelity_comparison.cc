#include "traces/results/fidelity_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "sim/base/quantity_text.h"
#include "traces/results/report_text.h"

namespace stepsim {
namespace {

constexpr int kColumn = 20;

struct ComparisonUnit {
  std::string_view name;
  double picoseconds;
};

ComparisonUnit unit_of(Duration largest) {
  constexpr std::array<ComparisonUnit, 3> kUnits{{{"s", 1e12}, {"ms", 1e9}, {"us", 1e6}}};
  for (const ComparisonUnit& unit : kUnits) {
    if (static_cast<double>(largest.count()) >= unit.picoseconds) return unit;
  }
  return {"ns", 1e3};
}

class Comparison : private ReportText {
 public:
  Comparison(const std::vector<StepReport>& reports, const ReportOptions& options)
      : ReportText(options.color), settings_(reports.front().settings), options_(options) {
    Duration largest{};
    for (const StepReport& report : reports) {
      runs_.push_back(report.run);
      largest = std::max(largest, report.run.result.step_time);
    }
    unit_ = unit_of(largest);
  }

  std::string write() {
    const FinishedRun& first = runs_.front();
    line("{}", paint(first.experiment.name, Paint::kBold));
    line("  {} on {}: {} x {}, {} collectives", first.experiment.model.name,
         first.experiment.cluster.name, grouped(first.metrics.chips), first.cluster.chip.name,
         name_of(first.options.granularity));
    for (const std::string& setting : settings_) wrapped(2, setting);
    blank();
    row("", [](const FinishedRun& run) { return std::string(name_of(run.options.fidelity)); });
    times("step time", [](const FinishedRun& run) { return run.result.step_time; });
    row("tokens/s", [](const FinishedRun& run) { return grouped(run.metrics.tokens_per_s); });
    row("MFU", [](const FinishedRun& run) {
      return fmt::format("{:.2f} %", 100 * run.metrics.model_flops_utilization);
    });
    section("Where the step goes", "mean of all ranks");
    parts();
    section("What the models see");
    differences();
    section("Simulator");
    row("events", [](const FinishedRun& run) {
      return grouped(static_cast<std::int64_t>(run.result.statistics.events));
    });
    row("packet-hops", [](const FinishedRun& run) {
      return grouped(static_cast<std::int64_t>(run.result.statistics.packet_hops));
    });
    row("time", [](const FinishedRun& run) {
      return fmt::format("{:.2f} s", run.result.statistics.wall_s);
    });
    if (!options_.json_path.empty()) {
      blank();
      line("  result  {}", options_.json_path);
    }
    return text();
  }

 private:
  void row(std::string_view label, const std::function<std::string(const FinishedRun&)>& cell) {
    std::string cells;
    for (const FinishedRun& run : runs_) cells += fmt::format("{:>{}}", cell(run), kColumn);
    line("  {:<{}}{}", label, kReportLabel, cells);
  }

  std::string in_unit(Duration time) const {
    return fmt::format("{:.6f} {}", static_cast<double>(time.count()) / unit_.picoseconds,
                       unit_.name);
  }

  // Adds a row of times, unless it is 0 in every run.
  void times(std::string_view label, const std::function<Duration(const FinishedRun&)>& time) {
    const auto shown = [&](const FinishedRun& run) { return time(run).count() != 0; };
    if (std::ranges::none_of(runs_, shown)) return;
    row(label, [&](const FinishedRun& run) { return in_unit(time(run)); });
  }

  void parts() {
    times("compute", [](const FinishedRun& run) { return run.result.breakdown.compute; });
    const std::vector<std::string>& axes = runs_.front().graph.axes;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      times(fmt::format("exposed {}", axes[axis]), [axis](const FinishedRun& run) {
        return run.result.breakdown.exposed_communication[axis];
      });
    }
    times("pipeline bubble", [](const FinishedRun& run) { return run.result.breakdown.bubble; });
    times("idle", [](const FinishedRun& run) { return run.result.breakdown.idle; });
    times("waiting for launches",
          [](const FinishedRun& run) { return run.result.breakdown.launch; });
  }

  // Compares each run with the one before it.
  void differences() {
    for (std::size_t i = 1; i < runs_.size(); ++i) {
      const Duration before = runs_[i - 1].result.step_time;
      const Duration change = runs_[i].result.step_time - before;
      const double percent =
          100 * static_cast<double>(change.count()) / static_cast<double>(before.count());
      const bool packets = runs_[i].options.fidelity == Fidelity::kPacket;
      line("  {:<{}}{} ({:+.3f} %)", packets ? "queues and packets cost" : "shared links cost",
           kReportLabel + 4, in_unit(change), percent);
    }
  }

  std::vector<FinishedRun> runs_;
  const std::vector<std::string>& settings_;
  const ReportOptions& options_;
  ComparisonUnit unit_{};
};

}  // namespace

std::string comparison_report(const std::vector<StepReport>& reports,
                              const ReportOptions& options) {
  return Comparison(reports, options).write();
}

}  // namespace stepsim
