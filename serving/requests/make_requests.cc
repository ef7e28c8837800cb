#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "serving/requests/random_use.h"
#include "serving/requests/request_file.h"
#include "serving/requests/request_source.h"
#include "sim/base/exact_math.h"
#include "sim/base/random.h"

namespace stepsim {
namespace {

// Makes the requests of one source.
class SourceReader {
 public:
  SourceReader(const RequestSource& source, RequestList& list, std::uint32_t& prefixes)
      : source_(source), list_(list), prefixes_(prefixes) {}

  void make() {
    add_tenant();
    if (source_.kind == ArrivalKind::kFile) {
      take_file();
    } else {
      draw();
    }
  }

 private:
  void add_tenant() {
    tenant_ = TenantId(static_cast<std::uint32_t>(list_.tenants.size()));
    Tenant& tenant = list_.tenants.emplace_back();
    tenant.name = source_.tenant.empty() ? std::string(name_of(source_.kind)) : source_.tenant;
    tenant.model = source_.model;
    if (source_.kind == ArrivalKind::kClosed) {
      tenant.loop = {.concurrency = *source_.concurrency,
                     .think = source_.think.value_or(Duration())};
    }
  }

  void take_file() {
    RequestRows rows = read_request_file(source_.file, source_.where, true);
    if (source_.count && *source_.count < static_cast<std::int64_t>(rows.requests.size())) {
      rows.requests.resize(static_cast<std::size_t>(*source_.count));
    }
    for (Request& request : rows.requests) {
      request.tenant = tenant_;
      request.priority += static_cast<std::int32_t>(source_.priority);
      request.prefix = PrefixId(request.prefix.index() + prefixes_);
      if (request.chain > 0) request.chain += static_cast<std::uint32_t>(list_.chains.size());
      list_.requests.push_back(request);
    }
    for (PromptChain& chain : rows.chains) {
      for (PrefixId& piece : chain.pieces) piece = PrefixId(piece.index() + prefixes_);
      list_.chains.push_back(std::move(chain));
    }
    prefixes_ += rows.prefixes;
  }

  void draw() {
    const LengthDraw input = lengths_of(*source_.input, true);
    const LengthDraw output = lengths_of(*source_.output, false);
    const RandomStream prefix(source_.seed, RandomUse::kPrefix);
    const auto count = static_cast<std::uint64_t>(*source_.count);
    list_.requests.reserve(list_.requests.size() + count);
    Time arrival;
    for (std::uint64_t i = 0; i < count; ++i) {
      arrival = arrival + gap_before(i);
      Request& request = list_.requests.emplace_back();
      request.arrival = arrival;
      request.input_tokens = input.of(i);
      request.output_tokens = output.of(i);
      request.tenant = tenant_;
      request.priority = static_cast<std::int32_t>(source_.priority);
      if (!source_.prefix) continue;
      const std::uint64_t drawn = prefix.below(static_cast<std::uint64_t>(source_.prefixes), i);
      request.prefix = PrefixId(prefixes_ + static_cast<std::uint32_t>(drawn));
      request.prefix_tokens =
          static_cast<std::int32_t>(std::min<std::int64_t>(*source_.prefix, request.input_tokens));
    }
    prefixes_ += static_cast<std::uint32_t>(source_.prefixes);
  }

  // Time from the request before, or from the start.
  Duration gap_before(std::uint64_t i) const {
    switch (source_.kind) {
      case ArrivalKind::kPoisson:
        return exponential(mean_gap(), RandomStream(source_.seed, RandomUse::kArrival).at(i));
      case ArrivalKind::kGamma: {
        const double shape = *source_.burstiness;
        const double drawn = gamma(shape, RandomStream(source_.seed, RandomUse::kArrival, i));
        return duration_from_picoseconds(static_cast<double>(mean_gap().count()) * drawn / shape);
      }
      case ArrivalKind::kBurst:
        if (!source_.size || i == 0 || i % static_cast<std::uint64_t>(*source_.size) != 0)
          return {};
        return *source_.every;
      case ArrivalKind::kClosed:
      case ArrivalKind::kFile:
        break;
    }
    return {};
  }

  Duration mean_gap() const { return duration_from_seconds(1 / *source_.rate); }

  LengthDraw lengths_of(const Length& length, bool is_input) const {
    std::vector<std::int32_t> rows;
    if (length.kind == LengthKind::kEmpirical) {
      for (const Request& row : read_request_file(length.file, "", false).requests) {
        rows.push_back(is_input ? row.input_tokens : row.output_tokens);
      }
    }
    return {length, source_.seed, is_input, std::move(rows)};
  }

  const RequestSource& source_;
  RequestList& list_;
  std::uint32_t& prefixes_;
  TenantId tenant_;
};

}  // namespace

RequestList make_requests(std::span<const RequestSource> sources) {
  RequestList list;
  std::uint32_t prefixes = 0;
  std::vector<Problem> problems;
  for (const RequestSource& source : sources) {
    try {
      SourceReader(source, list, prefixes).make();
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    } catch (const std::range_error& error) {
      problems.push_back(
          {"--requests", fmt::format("{}; {} come at {} a second", error.what(),
                                     source.count.value_or(0), source.rate.value_or(0))});
    }
  }
  if (list.requests.size() > static_cast<std::size_t>(kMostRequests)) {
    problems.push_back({"--requests", "must be at most " + std::to_string(kMostRequests) +
                                          " requests in all, are " +
                                          std::to_string(list.requests.size())});
  }
  throw_if_any(std::move(problems));
  return list;
}

}  // namespace stepsim
