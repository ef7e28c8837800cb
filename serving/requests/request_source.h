// RequestSource is one text behind --requests: how requests come, and how long they are.
//
//   poisson:rate=4,count=10000,input=1024,output=uniform:103-128,seed=1
//   gamma:rate=4,burstiness=0.5,count=10000,input=1024,output=128
//   burst:count=640,size=64,every=1s,input=1024,output=128
//   closed:concurrency=64,count=640,input=1024,output=128
//   file:trace.csv
//
// Several sources are several tenants of one system; their requests are merged by time. Random
// numbers depend on the seed alone (sim/base/random.h).

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serving/requests/length.h"
#include "serving/requests/request.h"
#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/fields/field.h"

namespace stepsim {

enum class ArrivalKind { kPoisson, kGamma, kBurst, kClosed, kFile };
inline constexpr std::size_t kArrivalKinds = 5;
std::string_view name_of(ArrivalKind kind);

struct RequestSource {
  ArrivalKind kind = ArrivalKind::kPoisson;
  std::string file{};  // kFile

  std::optional<double> rate{};  // requests a second
  std::optional<std::int64_t> count{};
  std::optional<Length> input{};
  std::optional<Length> output{};
  std::uint64_t seed = 1;
  std::optional<double> burstiness{};
  std::optional<std::int64_t> size{};
  std::optional<Duration> every{};
  std::optional<std::int64_t> concurrency{};
  std::optional<Duration> think{};
  std::optional<std::int64_t> prefix{};
  std::int64_t prefixes = 1;
  std::string where{};
  std::string tenant{};
  std::int64_t priority = 0;
  std::uint32_t model = 0;  // that is asked, of several; no key
};

const FieldTable<RequestSource>& request_fields();

// Adds every problem of the text.
RequestSource read_request_source(std::string_view text, std::vector<Problem>& problems);

// Makes the requests. Throws ConfigError with all problems of the files that sources name.
RequestList make_requests(std::span<const RequestSource> sources);

}  // namespace stepsim
