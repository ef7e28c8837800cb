// GraphTables adds works, names and communicators to an op graph and returns their indices. It
// keeps equal works once, so that programs share them.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/program/op_graph.h"

namespace stepsim {

class GraphTables {
 public:
  explicit GraphTables(OpGraph& graph) : graph_(graph) {}

  std::uint32_t compute(const std::vector<Kernel>& kernels, std::uint32_t path_label);
  std::uint32_t collective(const CollectiveWork& work);
  std::uint32_t message(const Message& message);
  std::uint32_t host(const HostWork& work);
  std::uint32_t name(const std::string& name);
  CommunicatorId communicator(Communicator communicator);

 private:
  OpGraph& graph_;
  std::map<std::string, std::uint32_t> names_;
};

}  // namespace stepsim
