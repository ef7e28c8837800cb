// How many points of a sweep run a second on one thread: without a store, into a new one, and from
// one that has them all. Expected: a store costs less than a tenth of the smallest points.
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/sweep/sweep_options.h"
#include "cli/sweep/sweep_run.h"
#include "cli/version.h"
#include "store/result_store.h"

namespace {

using namespace stepsim;

struct Case {
  const char* name;
  std::vector<std::string> arguments;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"ernie-4.5-0.3b on 8 H100",
       {"--model", "ernie-4.5-0.3b", "--cluster", "dgx-h100-8", "--plan",
        "global-batch=64,sequence=4096", "--over", "plan.tp=1,2,plan.dp=8,4", "--over",
        "plan.zero=0..3", "--over", "plan.microbatch=1,2,4", "--over",
        "cluster..nvlink_bandwidth=200GB/s,300GB/s,400GB/s,500GB/s,600GB/s"}},
      {"llama3-8b on 64 H100",
       {"--model", "llama3-8b", "--cluster", "dgx-h100-64", "--plan",
        "global-batch=64,sequence=4096", "--over", "plan.tp=1,2,4,8,plan.dp=64,32,16,8", "--over",
        "plan.zero=1..3", "--over", "cluster..nic_bandwidth=25GB/s,50GB/s,100GB/s"}},
      {"llama3-70b on 512 H100",
       {"llama3-70b-dgx-h100-512", "--over", "cluster..nic_bandwidth=25GB/s,50GB/s,100GB/s",
        "--over", "cluster..nvlink_bandwidth=300GB/s,450GB/s,900GB/s"}}};
  return all;
}

void measure(const char* name, const char* how, const SweepRequest& request, ResultStore* store) {
  const std::clock_t begin = std::clock();
  const SweepResult result = run_points(request, store, nullptr, {});
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  fmt::print("{:<26} {:<12} {:>6} {:>8.2f} {:>10.0f}\n", name, how, result.counts.points, seconds,
             static_cast<double>(result.counts.points) / seconds);
}

}  // namespace

int main() {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     fmt::format("stepsim-sweep-bench-{}.sqlite", getpid());
  fmt::print("{:<26} {:<12} {:>6} {:>8} {:>10}\n", "", "", "points", "CPU s", "points/s");
  for (const Case& one : cases()) {
    std::vector<std::string> arguments = one.arguments;
    arguments.insert(arguments.end(), {"--jobs", "1"});
    const SweepRequest request = read_sweep_request(arguments);
    measure(one.name, "no store", request, nullptr);
    std::filesystem::remove(path);
    std::optional<ResultStore> store;
    store.emplace(path.string(), version());
    measure(one.name, "new store", request, &*store);
    measure(one.name, "again", request, &*store);
    store.reset();
    std::filesystem::remove(path);
  }
}
