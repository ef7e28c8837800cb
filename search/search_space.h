// SearchSpace is a set of plans: some keys of a plan take several values, all others have those of
// a base plan. Plans are numbered; the number decides ties, so a space has an order.
//
//   SearchSpace space({.key = "tp", .values = {"1", "2", "4", "8"}}, ...);
//   space.plan(number, base, model, chips)
//
// `dp` follows from the chips and the other axes unless it is a key of the space or fixed.

#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/plan/parallel_plan.h"
#include "sim/base/error.h"
#include "sim/network/places.h"
#include "workload/model/model_spec.h"

namespace stepsim {

struct Dimension {
  std::string key;                  // a key of key_groups.h, or "layout"
  std::vector<std::string> values;  // as in files; layout also takes "equal"
  // Its values are usual_values(): plans that differ only in what has no effect are left out.
  bool is_usual = false;
};

// Why a plan of the space is no candidate.
struct NoPlan {
  std::string reason;   // a few words, the same for many plans: "rule of tp"
  std::string message;  // what is wrong with this one
  // SearchSpace::draft(): so many numbers, from this one on, have no plan for the same reason.
  std::uint64_t numbers = 1;
};

// A plan of the space, or why there is none.
struct PlanOrReason {
  std::optional<ParallelPlan> plan{};
  NoPlan why{};
};

class SearchSpace {
 public:
  // `derives_dp`: dp is what the other axes leave of the chips.
  SearchSpace(std::vector<Dimension> dimensions, bool derives_dp);

  // Returns the number of combinations of values, at most 2^62.
  std::uint64_t size() const { return size_; }
  const std::vector<Dimension>& dimensions() const { return dimensions_; }

  // Returns the plan of a number below size(). Rules of plans are not checked yet, but for the
  // chips that dp divides. REQUIRES: find_problems() of the values is empty.
  PlanOrReason plan(std::uint64_t number, const ParallelPlan& base, const ModelSpec& model,
                    std::int64_t chips) const;
  // The same, but for layout=balanced: balanced() works that out, by FLOPs alone.
  PlanOrReason draft(std::uint64_t number, const ParallelPlan& base, const ModelSpec& model,
                     std::int64_t chips) const;

  // Returns the numbers of the combinations that differ from this one in the value of one key, or
  // of two: for keys of many values the nearest, and others at distances that double.
  std::vector<std::uint64_t> neighbours(std::uint64_t number) const;
  std::vector<std::uint64_t> neighbours_by_two(std::uint64_t number) const;

 private:
  // Returns the numbers with other values of one dimension.
  std::vector<std::uint64_t> along(std::size_t dimension, std::uint64_t number) const;
  // Returns how many numbers from this one on have the same values of `keys`.
  std::uint64_t numbers_alike(std::uint64_t number,
                              std::initializer_list<std::string_view> keys) const;

  std::vector<Dimension> dimensions_;  // in the order of all_keys()
  bool derives_dp_;
  std::uint64_t size_ = 1;
};

// Returns the values that a key takes where none are given. Empty: the key has none, its values
// must be listed. `base` gives the sequence and the global batch.
std::vector<std::string> usual_values(std::string_view key, const ModelSpec& model,
                                      const Places& places, const ParallelPlan& base);

// The keys of the space where none is given.
std::vector<std::string> usual_keys(const ModelSpec& model);

// Returns the lists of "tp=1..8,schedule=1f1b,zb_h1,pp=..": values are listed, a range of whole
// numbers (a..b), or `..` for the usual ones, which are left empty here. Problems are those of the
// text and of values that the key doesn't take.
std::vector<Dimension> read_space(std::string_view text, std::string_view option,
                                  std::vector<Problem>& problems);

// Sets a key of a plan, as in a file. Returns what is wrong with the value.
std::vector<std::string> set_key(std::string_view key, std::string_view value, ParallelPlan& plan);

// Works out layout=balanced where the plan has it and that makes sense; check() says where not.
ParallelPlan balanced(ParallelPlan plan, const ModelSpec& model);

}  // namespace stepsim
