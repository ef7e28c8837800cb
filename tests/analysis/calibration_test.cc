#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "calibration/calibrate_all.h"
#include "calibration/calibrate_library.h"
#include "calibration/calibrate_matmuls.h"
#include "calibration/determined.h"
#include "calibration/errors.h"
#include "calibration/fit.h"
#include "calibration/three_digits.h"
#include "experiment/build_cluster.h"
#include "proto/load_experiment.h"
#include "proto/messages/changed_entry.h"
#include "tests/support/reference_folder.h"
#include "tests/support/temporary_folder.h"
#include "workload/parts/kernels.h"

namespace stepsim {
namespace {

std::string write_file(const std::string& name, const std::string& text) {
  const std::filesystem::path path = temporary_folder() / name;
  std::ofstream(path) << text;
  return path.string();
}

TEST(ThreeDigitsTest, RoundsAndStepsByTheLastDigit) {
  EXPECT_EQ(rounded_to_three_digits(0.87849), 0.878);
  EXPECT_EQ(rounded_to_three_digits(13249), 13200);
  EXPECT_EQ(rounded_to_three_digits(0), 0);
  EXPECT_EQ(ThreeDigits::of(0.999)->next().value(), 1);
  EXPECT_EQ(ThreeDigits::of(1)->before().value(), 0.999);
  EXPECT_EQ(ThreeDigits::of(1.23e-6)->next().value(), 1.24e-6);
  EXPECT_EQ(ThreeDigits::of(-1), std::nullopt);
}

TEST(CalibrationErrorsTest, LogErrorIsTheLogarithm) {
  for (const double ratio : {1e-6, 0.3, 0.7071, 0.99, 1.0, 1.5, 2.0, 12345.6}) {
    EXPECT_NEAR(log_error(ratio * 3, 3), std::abs(std::log(ratio)), 1e-14) << ratio;
  }
}

TEST(CalibrationErrorsTest, SummaryHasMedianAndNearestRank) {
  const ErrorSummary summary = summary_of({-0.4, 0.1, 0.2, 0.3});
  EXPECT_EQ(summary.rows, 4U);
  EXPECT_DOUBLE_EQ(summary.median, 0.25);
  EXPECT_DOUBLE_EQ(summary.p90, 0.4);
}

// time = constant + x * slope, with x = 1, 2, 4, ...
FitProblem line_problem(double constant, double slope, std::size_t shapes) {
  FitProblem problem;
  problem.constants = {{.name = "constant",
                        .unit = "s",
                        .value = 1,
                        .least = 0,
                        .most = 1000,
                        .scale = 1,
                        .needs = "small x"},
                       {.name = "slope",
                        .unit = "",
                        .value = 1,
                        .least = 0,
                        .most = 1000,
                        .scale = 1,
                        .needs = "several x"}};
  std::vector<double> sizes;
  for (std::size_t i = 0; i < shapes; ++i) sizes.push_back(std::ldexp(1.0, static_cast<int>(i)));
  for (const double x : sizes) {
    problem.points.push_back({.shape = std::to_string(x), .seconds = constant + slope * x});
  }
  problem.seconds = [sizes](std::span<const double> values, std::size_t point) {
    return values[0] + values[1] * sizes[point];
  };
  return problem;
}

TEST(FitTest, FindsTheConstantsThatMadeTheTimes) {
  FitProblem problem = line_problem(7.25, 0.314, 12);
  hold_out_a_fifth(problem.points);
  const FitResult result = fit(problem);
  EXPECT_EQ(result.why_kept, (std::vector<std::string>{"", ""}));
  EXPECT_EQ(result.values, (std::vector<double>{7.25, 0.314}));
}

TEST(FitTest, AFifthIsHeldOutByShapeAndIsNotFitted) {
  FitProblem problem = line_problem(7.25, 0.314, 12);
  problem.points.push_back(problem.points.front());
  hold_out_a_fifth(problem.points);
  std::size_t held_out = 0;
  for (const FitPoint& point : problem.points) held_out += point.held_out ? 1 : 0;
  EXPECT_GE(held_out, 2U);
  EXPECT_LE(held_out, 3U);
  EXPECT_EQ(problem.points.front().held_out, problem.points.back().held_out);
  // A wrong time that is held out changes nothing.
  const FitResult before = fit(problem);
  for (FitPoint& point : problem.points) point.seconds *= point.held_out ? 3 : 1;
  EXPECT_EQ(fit(problem).values, before.values);
}

TEST(FitTest, FewerThanFiveShapesHoldNothingOut) {
  FitProblem problem = line_problem(1, 1, 4);
  hold_out_a_fifth(problem.points);
  for (const FitPoint& point : problem.points) EXPECT_FALSE(point.held_out);
}

TEST(FitTest, OneSizeDeterminesOneConstant) {
  FitProblem problem = line_problem(7.25, 0.314, 1);
  problem.points.resize(1);
  for (int i = 0; i < 9; ++i) problem.points.push_back(problem.points.front());
  problem.seconds = [](std::span<const double> values, std::size_t) {
    return values[0] + values[1];
  };
  // Ten measurements of one shape are not even three shapes.
  EXPECT_EQ(fit(problem).why_kept[0], "1 shapes determine 0 constants at most (needs small x)");
  for (std::size_t i = 0; i < 10; ++i) problem.points[i].shape = std::to_string(i);
  const FitResult result = fit(problem);
  EXPECT_EQ(result.why_kept[0], "");
  EXPECT_EQ(result.why_kept[1], "these rows can't tell it from constant (needs several x)");
  EXPECT_EQ(result.values[1], 1);
}

TEST(FitTest, LargeSizesDoNotTellTheConstant) {
  FitProblem problem = line_problem(1, 3, 30);
  problem.points.erase(problem.points.begin(), problem.points.begin() + 15);
  const auto seconds = problem.seconds;
  problem.seconds = [seconds](std::span<const double> values, std::size_t point) {
    return seconds(values, point + 15);
  };
  const FitResult result = fit(problem);
  EXPECT_EQ(result.why_kept[0], "no row depends on it enough (needs small x)");
  EXPECT_EQ(result.values, (std::vector<double>{1, 3}));
}

TEST(FitTest, WithoutPointsEverythingStays) {
  FitProblem problem = line_problem(1, 1, 0);
  EXPECT_EQ(fit(problem).why_kept[0], "there is no row");
  EXPECT_EQ(fit(problem).values, (std::vector<double>{1, 1}));
}

// Times of matmuls on a chip, as exact as the model.
std::vector<MatmulTiming> timings_on(const ChipSpec& chip, std::int64_t least_rows) {
  std::vector<MatmulTiming> timings;
  for (std::int64_t m = least_rows; m <= 16384; m *= 4) {
    for (const std::int64_t n : {1024, 4096, 14336}) {
      for (const std::int64_t k : {1024, 4096, 14336}) {
        MeasuredKernel kernel{
            .kernel = matmul("gemm", {.operands = DataType::kBf16, .result = DataType::kBf16},
                             {.m = m, .n = n, .k = k}),
            .problem = {}};
        const double seconds = to_seconds(time_of(kernel, chip));
        timings.push_back({std::move(kernel), seconds});
      }
    }
  }
  return timings;
}

ChipSpec slower_h100() {
  ChipSpec chip = load_chip("h100-sxm");
  chip.efficiency.matmul.peak_fraction = 0.7;
  chip.efficiency.matmul.memory_fraction = 0.65;
  chip.efficiency.matmul.start = duration_from_seconds(6e-6);
  return chip;
}

const CalibratedConstant& constant_of(const Calibration& calibration, const std::string& name) {
  return *std::ranges::find(calibration.constants, name, &CalibratedConstant::name);
}

TEST(CalibrateMatmulsTest, FindsTheConstantsThatMadeTheTimes) {
  const MatmulCalibration found =
      calibrate_matmuls(timings_on(slower_h100(), 1), load_chip("h100-sxm"), {DataType::kBf16});
  EXPECT_NEAR(found.efficiency.peak_fraction, 0.7, 0.01);
  EXPECT_NEAR(*found.efficiency.memory_fraction, 0.65, 0.01);
  EXPECT_NEAR(to_seconds(*found.efficiency.start), 6e-6, 0.2e-6);
  EXPECT_GT(found.calibration.of_all().before.median, 0.1);
  EXPECT_LT(found.calibration.of_all().after.median, 0.01);
}

TEST(CalibrateMatmulsTest, LargeMatmulsTellOnlyThePeak) {
  const MatmulCalibration found =
      calibrate_matmuls(timings_on(slower_h100(), 16384), load_chip("h100-sxm"), {DataType::kBf16});
  EXPECT_NEAR(found.efficiency.peak_fraction, 0.7, 0.02);
  for (const char* name : {"memory_fraction", "start", "operand_bandwidth"}) {
    const CalibratedConstant& constant = constant_of(found.calibration, name);
    EXPECT_NE(constant.why_kept, "") << name;
    EXPECT_EQ(constant.before, constant.after) << name;
  }
}

TEST(CalibrateMatmulsTest, ATypeOfItsOwnLeavesOthersAlone) {
  ChipSpec chip = load_chip("h100-sxm");
  const std::size_t types = chip.efficiency.matmul_of.size();
  EXPECT_EQ(&matmul_entry(chip, {DataType::kFp16}), &chip.efficiency.matmul);
  EXPECT_EQ(matmul_entry(chip, {DataType::kFp8}).type, DataType::kFp8);
  EXPECT_EQ(chip.efficiency.matmul_of.size(), types);
  EXPECT_EQ(matmul_entry(chip, {DataType::kInt8}).type, DataType::kInt8);
  EXPECT_EQ(chip.efficiency.matmul_of.size(), types + 1);
}

TEST(CalibrateMatmulsTest, NarrowWeightsAreATypeOfTheirOwn) {
  ChipSpec chip = load_chip("a40");
  matmul_entry(chip, {DataType::kBf16, DataType::kInt8}).peak_fraction = 0.4;
  EXPECT_EQ(chip.efficiency.matmul_for(DataType::kBf16, DataType::kInt8).peak_fraction, 0.4);
  EXPECT_NE(chip.efficiency.matmul.peak_fraction, 0.4);
  EXPECT_EQ(name_of(MatmulType{DataType::kBf16, DataType::kInt8}), "bf16 with int8 weights");
}

// All-reduces of 2, 4 and 8 chips of a node, 1 KiB to 1 GiB, as a library has them.
std::vector<CollectiveTiming> all_reduces(Cluster& cluster, const CommunicationLibrary& library,
                                          const std::vector<std::int64_t>& ranks,
                                          const std::vector<int>& exponents) {
  std::vector<CollectiveTiming> timings;
  for (const std::int64_t members : ranks) {
    for (const int exponent : exponents) {
      const MeasuredCollective measured{
          .type = DataType::kInt8, .bytes = std::int64_t{1} << exponent, .ranks = members};
      CollectiveTiming timing{.name = "all_reduce",
                              .collective = CollectiveOnCluster(measured, cluster),
                              .shape = std::to_string(members) + " " + std::to_string(exponent),
                              .seconds = 0};
      timing.seconds = timing.collective.time(library);
      timings.push_back(std::move(timing));
    }
  }
  return timings;
}

std::vector<int> exponents(int first, int last) {
  std::vector<int> all;
  for (int i = first; i <= last; ++i) all.push_back(i);
  return all;
}

ProtocolTiming& ring_simple(CommunicationLibrary& library) {
  return *std::ranges::find_if(library.timings, [](const ProtocolTiming& timing) {
    return timing.path == LibraryPath::kRing && timing.protocol == Protocol::kSimple;
  });
}

class CalibrateLibraryTest : public testing::Test {
 protected:
  CalibrateLibraryTest() : cluster_(build_cluster(load_cluster("dgx-h100-8"))) {
    library_ = cluster_.library;
    changed_ = library_;
    ring_simple(changed_).start = duration_from_seconds(20e-6);
    ring_simple(changed_).link_fraction[0] = 0.6;
  }

  Cluster cluster_;
  CommunicationLibrary library_;
  CommunicationLibrary changed_;
};

TEST_F(CalibrateLibraryTest, FindsTheConstantsThatMadeTheTimes) {
  // Only rings by Simple, so that they run whatever their constants are.
  for (CommunicationLibrary* const library : {&library_, &changed_}) {
    std::erase_if(library->timings, [](const ProtocolTiming& timing) {
      return timing.path != LibraryPath::kMessages &&
             (timing.path != LibraryPath::kRing || timing.protocol != Protocol::kSimple);
    });
  }
  const auto timings = all_reduces(cluster_, changed_, {2, 4, 8}, exponents(10, 30));
  LibraryCalibration found = calibrate_library(timings, library_);
  EXPECT_NEAR(to_seconds(ring_simple(found.library).start), 20e-6, 2e-6);
  EXPECT_NEAR(ring_simple(found.library).link_fraction[0], 0.6, 0.02);
  EXPECT_LT(found.errors.back().after.median, 0.01);
  EXPECT_LT(found.errors.back().after.p90, 0.02);
  EXPECT_GT(found.errors.back().before.p90, 0.1);
}

TEST_F(CalibrateLibraryTest, OneNumberOfRanksTellsNoHop) {
  const auto timings = all_reduces(cluster_, changed_, {8}, exponents(10, 30));
  for (const Calibration& fit : calibrate_library(timings, library_).fits) {
    EXPECT_NE(constant_of(fit, "nvlink_hop").why_kept, "") << fit.of;
  }
}

TEST_F(CalibrateLibraryTest, OneSizeTellsNoTwoConstants) {
  const auto timings = all_reduces(cluster_, changed_, {2, 3, 4, 5, 6, 7, 8}, {30});
  for (const Calibration& fit : calibrate_library(timings, library_).fits) {
    EXPECT_LE(fit.fitted(), 1U) << fit.of;
    EXPECT_NE(constant_of(fit, "start").why_kept, "");
  }
}

// The terms are the simulator's: away from the present constants too.
TEST_F(CalibrateLibraryTest, TermsAreWhatTheSimulatorSays) {
  for (const CollectiveTiming& timing : all_reduces(cluster_, library_, {2, 8}, {12, 20, 26, 30})) {
    const auto index = timing_of(timing.collective, library_);
    ASSERT_TRUE(index);
    const CollectiveTerms terms = terms_of(timing.collective, library_, *index);
    CommunicationLibrary other = library_;
    TimingValues values = values_of(other.timings[*index], other.inside);
    values.start *= 3;
    values.hop += 2e-6;
    values.rate *= 0.4;
    values.copy = 200e9;
    values.fill = 30e-6;
    values.fill_bytes = 65536;
    set_values(values, other.inside, other.timings[*index]);
    // Nothing else may be faster.
    const ProtocolTiming kept = other.timings[*index];
    other.timings = {kept};
    const double simulated = timing.collective.time(other);
    EXPECT_NEAR(terms.seconds(values) / simulated, 1, 1e-4) << timing.shape;
  }
}

TEST(ChangedEntryTest, AWrittenChipIsReadBack) {
  ChipSpec chip = slower_h100();
  matmul_entry(chip, {DataType::kInt8}).peak_fraction = 0.5;
  chip.power->joules_per_teraflop = 1.23;
  const std::string path = write_file(
      "chip.textproto", changed_chip("h100-sxm", chip, {.matmuls = true, .power = true}));
  const ChipSpec read = load_chip(path);
  EXPECT_EQ(read.name, "h100-sxm");
  EXPECT_EQ(read.power->joules_per_teraflop, 1.23);
  EXPECT_EQ(read.efficiency.matmul.peak_fraction, 0.7);
  EXPECT_EQ(*read.efficiency.matmul.start, duration_from_seconds(6e-6));
  EXPECT_EQ(read.efficiency.matmul_for(DataType::kInt8).peak_fraction, 0.5);
  for (const MatmulTiming& timing : timings_on(chip, 1)) {
    for (const DataType type : {DataType::kBf16, DataType::kFp8, DataType::kInt8}) {
      Kernel kernel = *timing.kernel.kernel;
      kernel.type = type;
      EXPECT_EQ(time_of(kernel, read).total, time_of(kernel, chip).total);
    }
  }
}

// Those of attention and serving are still a sister's.
TEST(ChangedEntryTest, AChipKeepsItsSister) {
  const ChipSpec chip = load_chip("h200-sxm");
  ASSERT_EQ(chip.kernel_constants_of, "h100-sxm");
  const ChipSpec read =
      load_chip(write_file("chip.textproto", changed_chip("h200-sxm", chip, {.matmuls = true})));
  EXPECT_EQ(read.kernel_constants_of, "h100-sxm");
  EXPECT_EQ(read.serving.decode.size(), chip.serving.decode.size());
}

TEST(ChangedEntryTest, AWrittenLibraryIsReadBack) {
  const Cluster cluster = build_cluster(load_cluster("dgx-h100-8"));
  CommunicationLibrary library = cluster.library;
  for (std::size_t i = 0; i < library.timings.size(); ++i) {
    library.timings[i].start += duration_from_seconds(1e-6 * static_cast<double>(i));
    const std::string path =
        write_file("library.textproto", changed_library(library.name, library, {i}));
    const CommunicationLibrary read = load_cluster("dgx-h100-8", path).library;
    EXPECT_EQ(read.name, library.name + "-calibrated");
    ASSERT_EQ(read.timings.size(), library.timings.size());
    const ProtocolTiming& wanted = library.timings[i];
    const ProtocolTiming& found = *read.find(wanted.path, wanted.protocol);
    EXPECT_EQ(found.start, wanted.start);
    EXPECT_EQ(found.hop, wanted.hop);
    EXPECT_EQ(found.link_fraction, wanted.link_fraction);
    EXPECT_EQ(found.most, wanted.most);
    EXPECT_EQ(found.copy, wanted.copy);
    EXPECT_EQ(found.fill, wanted.fill);
    EXPECT_EQ(found.fill_bytes, wanted.fill_bytes);
    EXPECT_EQ(found.doubling, wanted.doubling);
    EXPECT_EQ(found.channels.most, wanted.channels.most);
    EXPECT_EQ(found.channels.rate, wanted.channels.rate);
    EXPECT_EQ(found.channels.accesses, wanted.channels.accesses);
  }
}

std::vector<std::string> problems_of(const std::vector<std::string>& files,
                                     const CalibrationChoice& choice) {
  CalibrationInput input(load_hardware());
  std::vector<std::string> lines;
  for (const Problem& problem : input.read(files, choice)) {
    lines.push_back(std::filesystem::path(problem.field).filename().string() + ": " +
                    problem.message);
  }
  return lines;
}

constexpr const char* kKernels = "chip,op,dtype,shape,measured.time\n";
constexpr const char* kLarge = ",bf16,\"m=8192,n=8192,k=8192\",";

TEST(CalibrationInputTest, EveryProblemIsNamedWithRowAndColumn) {
  const std::string h100 = std::string("h100-sxm,gemm") + kLarge;
  const std::string table = write_file(
      "kernels.csv", kKernels + std::string("h100-sxm,gemm,bf16,\"m=one,n=8192,k=8192\",1500us\n") +
                         h100 + "-3\na100-sxm-80gb,gemm" + kLarge + "4600us\n" + h100 +
                         "1500us\nNothing,gemm" + kLarge + "1500us\n");
  const std::string old =
      write_file("old.csv", "hardware,op,dtype,m,n,k,time_us\nH100,gemm,bf16,1,8192,8192,15\n");
  const std::vector<std::string> problems = problems_of({table, old, "/no/such.log"}, {});
  ASSERT_EQ(problems.size(), 6U);
  EXPECT_EQ(problems[0], "kernels.csv:2: shape: m must be a whole number, 1 or more, is \"one\"");
  EXPECT_EQ(problems[1], "kernels.csv:3: measured.time: must be a time above 0: 12us");
  EXPECT_EQ(problems[2].substr(0, 14), "kernels.csv:6:");
  EXPECT_EQ(
      problems[3],
      "kernels.csv: has measurements of a100-sxm-80gb, h100-sxm: --hardware says which count");
  EXPECT_NE(problems[4].find("scripts/convert_tables.py"), std::string::npos);
  EXPECT_EQ(problems[5], "such.log: can't be read: No such file or directory");
  EXPECT_EQ(problems_of({}, {.hardware = {"nothing"}}).size(), 1U);
}

TEST(CalibrationInputTest, RowsThatAreNotUsedHaveAReason) {
  const std::string h100 = std::string("h100-sxm,gemm") + kLarge;
  const std::string table = write_file(
      "reasons.csv", kKernels + h100 + "1500us\nh100-sxm,add,bf16,\"m=8192,n=8192\",100us\n" +
                         h100 + "15us\n" + h100 + "\n" + h100 + "1500ms\na100-sxm-80gb,gemm" +
                         kLarge + "4600us\n");
  CalibrationInput input(load_hardware());
  EXPECT_TRUE(input.read({table}, {.hardware = {"h100-sxm"}}).empty());
  EXPECT_EQ(input.unused(),
            (std::map<std::string, std::size_t>{{"faster than the chip's peak", 1},
                                                {"kernels but matmuls", 1},
                                                {"more than 30 times off: a slip of a unit?", 1},
                                                {"no time was measured", 1},
                                                {"other hardware than --hardware", 1}}));
  ASSERT_EQ(input.files().size(), 1U);
  EXPECT_EQ(input.files().front().rows, 6U);
  EXPECT_EQ(input.files().front().used, 1U);
}

TEST(CalibrateAllTest, IsTheSameWithAnyNumberOfThreads) {
  const std::string table = (reference_folder() / "measured" / "matmuls.csv").string();
  CalibrationInput input(load_hardware());
  ASSERT_TRUE(input.read({table}, {}).empty());
  std::vector<std::string> texts;
  for (const std::size_t threads : {1U, 3U}) {
    const CalibrationResult result = calibrate_all(input, {.threads = threads});
    ASSERT_EQ(result.chips.size(), 1U);
    ASSERT_EQ(result.chips[0].fits.size(), 2U);
    texts.push_back(changed_chip("h100-sxm", result.chips[0].chip, {.matmuls = true}));
  }
  EXPECT_EQ(texts[0], texts[1]);
}

}  // namespace
}  // namespace stepsim
