// ReplicaRouter gives each request to one of the replicas.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "serving/replica.h"
#include "serving/serve.h"

namespace stepsim {

class ReplicaRouter {
 public:
  explicit ReplicaRouter(RouterPolicy policy) : policy_(policy) {}

  // Returns the position of the replica among `replicas`. Ties go to the first.
  std::size_t choose(RequestId request, std::span<Replica* const> replicas);

 private:
  RouterPolicy policy_;
  std::size_t next_ = 0;
};

}  // namespace stepsim
