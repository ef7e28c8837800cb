#include "calibration/calibrate_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace stepsim {
namespace {

constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;
constexpr double kKibi = 1024;
constexpr double kFlagsLeave = 120.0 / 128;  // of a link by LL128
// Where a search begins if the library has no such value.
constexpr double kUsualCopy = 700;       // GB/s
constexpr double kUsualFillBytes = 256;  // KiB
constexpr int kMostRounds = 8;

// A constant of a timing, and the member of TimingValues that it is, in its unit.
struct TimingConstant {
  Constant constant;
  double TimingValues::*member;
  double unit;
};

std::string name_of_hop(HopKind inside) {
  return inside == HopKind::kPcie ? "pcie_hop" : "nvlink_hop";
}

Constant duration(std::string name, double now, double scale, std::string needs) {
  return {.name = std::move(name),
          .unit = "us",
          .value = now / kMicro,
          .least = 0,
          .most = 5000,
          .scale = scale,
          .needs = std::move(needs)};
}

Constant fraction(std::string name, double now, double most, std::string needs) {
  return {.name = std::move(name),
          .unit = {},
          .value = now,
          .least = 0.01,
          .most = std::max(now, most),
          .scale = 0.3,
          .needs = std::move(needs)};
}

TimingConstant rate_constant(const ProtocolTiming& timing, const TimingValues& now,
                             HopKind inside) {
  const char* const needs = "large collectives";
  if (has_most(timing)) {
    return {{.name = "most",
             .unit = "GB/s",
             .value = now.rate / kGiga,
             .least = 0.1,
             .most = 1e5,
             .scale = 10,
             .needs = needs},
            &TimingValues::rate,
            kGiga};
  }
  const double most = timing.protocol == Protocol::kLl128 ? kFlagsLeave : 1;
  return {fraction(inside == HopKind::kPcie ? "pcie_fraction" : "nvlink_fraction", now.rate, most,
                   needs),
          &TimingValues::rate, 1};
}

std::vector<TimingConstant> transport_constants(const ProtocolTiming& timing,
                                                const TimingValues& now, HopKind inside) {
  std::vector<TimingConstant> all = {
      {duration("start", now.start, 5, "small collectives"), &TimingValues::start, kMicro},
      {duration(name_of_hop(inside), now.hop, 0.5, "several numbers of ranks"), &TimingValues::hop,
       kMicro},
      {duration("network_hop", now.network_hop, 1, "small collectives over several nodes"),
       &TimingValues::network_hop, kMicro}};
  all.push_back(rate_constant(timing, now, inside));
  all.push_back({fraction("network_fraction", now.network_fraction, 1,
                          "large collectives over several nodes"),
                 &TimingValues::network_fraction, 1});
  return all;
}

std::vector<TimingConstant> pipeline_constants(const TimingValues& now) {
  return {{{.name = "copy",
            .unit = "GB/s",
            .value = now.copy > 0 ? now.copy / kGiga : kUsualCopy,
            .is_set = now.copy > 0,
            .least = 0.5,
            .most = 1e5,
            .scale = 1,
            .needs = "several numbers of ranks and sizes"},
           &TimingValues::copy,
           kGiga},
          {duration("fill", now.fill, 5, "many sizes"), &TimingValues::fill, kMicro},
          {{.name = "fill_bytes",
            .unit = "KiB",
            .value = now.fill > 0 ? now.fill_bytes / kKibi : kUsualFillBytes,
            .is_set = now.fill > 0,
            .least = 0.25,
            .most = 1 << 16,
            .scale = 0.25,
            .needs = "many sizes"},
           &TimingValues::fill_bytes,
           kKibi}};
}

// The fit of one timing.
class TimingFit {
 public:
  TimingFit(const std::vector<CollectiveTiming>& timings, const CommunicationLibrary& library,
            std::size_t timing, const std::vector<std::size_t>& rows)
      : now_(values_of(library.timings[timing], library.inside)) {
    const ProtocolTiming& one = library.timings[timing];
    name_ = fmt::format("{} {} of {}", name_of(one.path), name_of(one.protocol), library.name);
    constants_ = transport_constants(one, now_, library.inside);
    for (TimingConstant& more : pipeline_constants(now_)) constants_.push_back(std::move(more));
    if (one.path == LibraryPath::kMessages) {
      constants_.push_back(
          {duration("doubling", now_.doubling, 0.5, "all-to-alls of several numbers of ranks"),
           &TimingValues::doubling, kMicro});
    }
    for (const TimingConstant& constant : constants_) {
      problem_.constants.push_back(constant.constant);
    }
    for (const std::size_t row : rows) {
      terms_.push_back(terms_of(timings[row].collective, library, timing));
      problem_.points.push_back({.shape = timings[row].shape, .seconds = timings[row].seconds});
    }
    problem_.seconds = [this](std::span<const double> values, std::size_t point) {
      return terms_[point].seconds(with(values));
    };
    problem_.starts = {spread(1), spread(4)};
    hold_out_a_fifth(problem_.points);
  }
  TimingFit(const TimingFit&) = delete;
  TimingFit& operator=(const TimingFit&) = delete;

  // Fits, and puts the values into the timing if a constant was fitted.
  Calibration run(HopKind inside, ProtocolTiming& timing) const {
    const FitResult result = fit(problem_);
    Calibration calibration = calibrate(name_, problem_, result);
    if (calibration.fitted() > 0) set_values(with(result.values), inside, timing);
    return calibration;
  }

 private:
  // A value that was not changed stays as it was, also if it was none.
  TimingValues with(std::span<const double> values) const {
    TimingValues changed = now_;
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      const TimingConstant& one = constants_[i];
      const bool is_fill = one.member == &TimingValues::fill_bytes && changed.fill > 0;
      if (values[i] == one.constant.value && !is_fill) continue;
      changed.*one.member = values[i] * one.unit;
    }
    return changed;
  }

  // Returns a start away from zero and from the present values.
  std::vector<double> spread(double factor) const {
    std::vector<double> start;
    for (const TimingConstant& one : constants_) {
      const Constant& constant = one.constant;
      const double size = std::max(constant.value, constant.scale);
      start.push_back(std::clamp(size / factor, constant.least, constant.most));
    }
    return start;
  }

  TimingValues now_;
  std::string name_;
  std::vector<TimingConstant> constants_;
  std::vector<CollectiveTerms> terms_;  // by point
  FitProblem problem_;
};

// Sums up what the simulator says with both libraries, by name and over all.
std::vector<CalibrationErrors> errors_by_name(const std::vector<CollectiveTiming>& timings,
                                              const CommunicationLibrary& before,
                                              const CommunicationLibrary& after) {
  struct Both {
    std::vector<double> before;
    std::vector<double> after;
    void add(double first, double second) {
      before.push_back(first);
      after.push_back(second);
    }
  };
  std::map<std::string, Both> by_name;
  Both all;
  for (const CollectiveTiming& timing : timings) {
    const double first = timing.collective.time(before) / timing.seconds - 1;
    const double second = timing.collective.time(after) / timing.seconds - 1;
    by_name[timing.name].add(first, second);
    all.add(first, second);
  }
  std::vector<CalibrationErrors> errors;
  for (const auto& [name, both] : by_name) {
    errors.push_back({name, summary_of(both.before), summary_of(both.after)});
  }
  errors.push_back({"all", summary_of(all.before), summary_of(all.after)});
  return errors;
}

// Returns the timing that each row runs with, if any.
std::vector<std::optional<std::size_t>> timings_of(const std::vector<CollectiveTiming>& rows,
                                                   const CommunicationLibrary& library) {
  std::vector<std::optional<std::size_t>> timings;
  for (const CollectiveTiming& row : rows) timings.push_back(timing_of(row.collective, library));
  return timings;
}

double mean_error(const std::vector<CollectiveTiming>& rows, const CommunicationLibrary& library) {
  double sum = 0;
  for (const CollectiveTiming& row : rows) {
    sum += std::abs(std::log(row.collective.time(library) / row.seconds));
  }
  return sum / static_cast<double>(std::max<std::size_t>(1, rows.size()));
}

}  // namespace

LibraryCalibration calibrate_library(const std::vector<CollectiveTiming>& timings,
                                     const CommunicationLibrary& library) {
  LibraryCalibration result{.library = library, .changed = {}, .fits = {}, .errors = {}};
  std::vector<std::optional<std::size_t>> taken = timings_of(timings, library);
  result.without_timing = static_cast<std::size_t>(
      std::ranges::count_if(taken, [](const auto& timing) { return !timing; }));
  CommunicationLibrary now = library;
  std::map<std::size_t, Calibration> fits;  // by timing
  std::optional<double> least;
  // A row tells each way that it has taken that it is no faster.
  std::vector<std::vector<std::size_t>> rows_of(library.timings.size());
  for (int round = 0; round < kMostRounds; ++round) {
    for (std::size_t row = 0; row < taken.size(); ++row) {
      if (!taken[row]) continue;
      std::vector<std::size_t>& rows = rows_of[*taken[row]];
      if (std::ranges::find(rows, row) == rows.end()) rows.push_back(row);
    }
    for (std::size_t timing = 0; timing < rows_of.size(); ++timing) {
      if (rows_of[timing].empty()) continue;
      const TimingFit fit(timings, library, timing, rows_of[timing]);
      now.timings[timing] = library.timings[timing];
      fits.insert_or_assign(timing, fit.run(library.inside, now.timings[timing]));
    }
    const double error = mean_error(timings, now);
    if (!least || error < *least) {
      least = error;
      result.library = now;
      result.fits.clear();
      result.changed.clear();
      for (const auto& [timing, calibration] : fits) {
        result.fits.push_back(calibration);
        if (calibration.fitted() > 0) result.changed.push_back(timing);
      }
    }
    std::vector<std::optional<std::size_t>> next = timings_of(timings, now);
    if (next == taken) break;
    taken = std::move(next);
  }
  result.errors = errors_by_name(timings, library, result.library);
  return result;
}

}  // namespace stepsim
