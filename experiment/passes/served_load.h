// ServedLoad says how `stepsim serve NAME` serves an experiment of the catalog or a file: the texts
// of its options, as `stepsim help serve` has them. The experiment's plan is that of a replica; it
// is of inference, decode, and says nothing of batches, which the engine decides.
//
//   serve {
//     engine: "vllm,prefix-cache=false"
//     requests: "closed:concurrency=64,count=640,input=1024,output=1024"
//     software: "vllm"
//   }

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/fields/field.h"

namespace stepsim {

struct ServedLoad {
  std::string engine{};  // empty: not given, here and below
  std::vector<std::string> requests{};
  std::string prefill{};
  std::string decode{};
  std::string decode_plan{};
  std::string transfer{};
  std::int64_t replicas = 0;  // 0: not given
  std::string software{};     // whose kernels run, where the chip has those of several

  bool given() const { return !requests.empty(); }
};

// `requests`, a list of texts, has no row: load_experiment() reads it.
const FieldTable<ServedLoad>& served_load_fields();

}  // namespace stepsim
