// stepsim._core, the compiled part of the Python package stepsim: runs a subcommand in the process
// of Python. bindings/stepsim/ makes the calls, objects and errors of Python of it.
//
// The interpreter's lock is released while a subcommand works. Signals such as Ctrl-C are looked
// for about every 50 ms of simulation, in the main thread alone, as Python does.

#include <malloc.h>
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <boost/program_options.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cli/call.h"
#include "cli/session/session.h"
#include "cli/subcommands.h"
#include "cli/version.h"
#include "proto/catalog/catalog.h"
#include "proto/load_experiment.h"
#include "schedules/plan/keys/key_groups.h"
#include "sim/base/error.h"
#include "sim/base/shown_text.h"
#include "sim/run/simulate.h"
#include "traces/files/output_file.h"

namespace stepsim {
namespace {

namespace py = pybind11;

// Asks Python for signals, and `goes_on` if there is one, not more often than every 50 ms. Keeps
// what signals and callables raise.
class SignalWatch {
 public:
  SignalWatch(py::object goes_on, py::object part)
      : goes_on_(std::move(goes_on)), part_(std::move(part)) {}

  // Any thread may ask; signals are looked for in the main thread alone, as Python does.
  bool goes_on() {
    const Clock::rep now = Clock::now().time_since_epoch().count();
    Clock::rep next = next_;
    if (now < next || !next_.compare_exchange_strong(next, now + kBetween.count())) return true;
    const py::gil_scoped_acquire acquired;
    if (raised_) return false;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      return goes_on_.is_none() || goes_on_().cast<bool>();
    } catch (...) {
      raised_ = std::current_exception();
      return false;
    }
  }

  // Hands a part of the result to Python; any thread may call it.
  void take(const std::string& part) {
    const py::gil_scoped_acquire acquired;
    if (raised_) return;
    try {
      part_(part);
    } catch (...) {
      raised_ = std::current_exception();
    }
  }
  bool takes_parts() const { return !part_.is_none(); }
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kBetween = std::chrono::milliseconds(50);

  std::atomic<Clock::rep> next_ = (Clock::now() + kBetween).time_since_epoch().count();
  py::object goes_on_;
  py::object part_;
  std::exception_ptr raised_;  // written by threads that have the interpreter's lock
};

py::list list_of(const std::vector<Problem>& problems) {
  py::list list;
  for (const Problem& problem : problems)
    list.append(py::make_tuple(shown_text(problem.field), shown_text(problem.message)));
  return list;
}

// Runs `work` without the interpreter's lock. What is wrong with the input is returned as a list of
// problems; empty: nothing.
template <typename Work>
std::vector<Problem> problems_of(Work work) {
  const py::gil_scoped_release released;
  try {
    work();
  } catch (const ConfigError& error) {
    return error.problems();
  } catch (const std::range_error& error) {
    return {{"input", error.what()}};
  }
  return {};
}

py::tuple call_subcommand(const std::string& name, const std::vector<std::string>& arguments,
                          py::object goes_on, py::object part) {
  Called called;
  SignalWatch watch(std::move(goes_on), std::move(part));
  std::function<void(const std::string&)> take;
  if (watch.takes_parts()) take = [&watch](const std::string& text) { watch.take(text); };
  const std::vector<Problem> problems = problems_of([&] {
    try {
      called = call(
          name, arguments, [&watch] { return watch.goes_on(); }, take);
    } catch (const SessionStopped&) {  // watch knows why, or goes_on() has said no
    } catch (const DeadlockError& error) {
      called.status = ExitStatus::kNo;
      called.errors = shown_text(std::string("the step never ends\n") + error.what());
    } catch (const OutputError& error) {
      called.status = ExitStatus::kNoOutput;
      called.errors = shown_text(error.what());
    }
  });
  watch.rethrow();
  return py::make_tuple(static_cast<int>(called.status), std::move(called.output),
                        std::move(called.errors), std::move(called.kept), list_of(problems));
}

py::list options_of(const std::string& name) {
  const Subcommand& subcommand = find_subcommand(name);
  py::list list;
  if (subcommand.options == nullptr) return list;
  const OptionList options = subcommand.options();
  for (const auto& option : options.options()) {
    const bool takes_value = option->semantic()->max_tokens() > 0;
    list.append(py::make_tuple(option->long_name(), takes_value, option->description()));
  }
  return list;
}

py::list names_of_subcommands() {
  py::list list;
  for (const Subcommand* one : subcommands()) list.append(std::string(one->name));
  return list;
}

py::list keys_of_plan() {
  py::list list;
  for (const KeyGroup group : kKeyGroups) {
    for (const auto& field : fields_of(group).fields()) {
      list.append(py::make_tuple(std::string(field->name()), field->accepts(),
                                 fields_of(group).default_of(*field).value_or(""),
                                 std::string(field->doc().help), std::string(name_of(group))));
    }
  }
  return list;
}

py::list kinds_of_catalog() {
  py::list kinds;
  for (const CatalogKind kind : kCatalogKinds) kinds.append(std::string(name_of(kind)));
  return kinds;
}

std::vector<std::string> names_in_catalog(const std::string& folder) {
  for (const CatalogKind kind : kCatalogKinds) {
    if (name_of(kind) == folder) return list(kind);
  }
  return {};
}

// Simulations need much the same memory again and again. Giving it back to the system after each
// call costs a small run a tenth of its time. These are the bounds to which glibc raises itself
// once a block of 32 MiB was freed: at most 64 MiB stay with the process.
void keep_freed_memory() {
  constexpr int kLargestBlock = 32 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargestBlock);
  mallopt(M_TRIM_THRESHOLD, 2 * kLargestBlock);
}

// What is wrong with a part of an experiment by itself: a model, a cluster or a plan.
py::list check_part(const std::string& kind, const std::string& file) {
  return list_of(problems_of([&] {
    if (kind == "model") load_model(file);
    if (kind == "cluster") load_cluster(file);
    if (kind == "plan") load_plan(file);
  }));
}

}  // namespace
}  // namespace stepsim

// The macro makes a function with C linkage in the global namespace.
PYBIND11_MODULE(_core, module) {
  namespace py = pybind11;
  using namespace stepsim;
  keep_freed_memory();
  module.doc() = "The compiled part of stepsim. Use the functions of stepsim itself.";
  module.attr("version") = std::string(version());
  module.def(
      "call", call_subcommand, py::arg("subcommand"), py::arg("arguments"),
      py::arg("goes_on") = py::none(), py::arg("part") = py::none(),
      "Runs a subcommand. Returns (exit status, standard output, standard error, outputs kept "
      "in memory, problems of the input). goes_on() is asked about every 50 ms; False ends the "
      "work. part(text) is called with each point of a sweep.");
  module.def("options", options_of, py::arg("subcommand"),
             "The options of a subcommand: (name, takes a value, help) of each.");
  module.def("subcommands", names_of_subcommands, "The names of all subcommands.");
  module.def("plan_keys", keys_of_plan,
             "The keys of plan, software and pass: (name, accepted, default, help, group).");
  module.def("catalog_kinds", kinds_of_catalog, "The kinds of the catalog.");
  module.def("catalog_names", names_in_catalog, py::arg("kind"),
             "The entries of a kind, in order.");
  module.def("check", check_part, py::arg("kind"), py::arg("file"),
             "The problems of a file of a \"model\", \"cluster\" or \"plan\" by itself.");
}
