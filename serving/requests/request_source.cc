#include "serving/requests/request_source.h"

#include <algorithm>
#include <array>

#include "sim/base/suggestion.h"
#include "sim/fields/field_assignments.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {
namespace {

using Keys = std::vector<std::string_view>;

constexpr double kMostRate = 1e9;
constexpr double kLeastRate = 1e-6;
constexpr double kMostSeed = 9007199254740992.0;  // 2^53
constexpr double kMostSeconds = 1e6;

// Keys that a kind must have, and others that it may have.
struct KindRow {
  std::string_view name;
  Keys required;
  Keys others;
};

const std::array<KindRow, kArrivalKinds>& kind_table() {
  static const std::array<KindRow, kArrivalKinds> kTable = [] {
    const auto made = [](std::string_view name, Keys required, Keys others) {
      for (const std::string_view key : {"count", "input", "output"}) required.push_back(key);
      for (const std::string_view key : {"seed", "prefix", "prefixes", "tenant", "priority"}) {
        others.push_back(key);
      }
      return KindRow{name, std::move(required), std::move(others)};
    };
    return std::array<KindRow, kArrivalKinds>{
        made("poisson", {"rate"}, {}), made("gamma", {"rate", "burstiness"}, {}),
        made("burst", {}, {"size", "every"}), made("closed", {"concurrency"}, {"think"}),
        KindRow{"file", {}, {"count", "where", "tenant", "priority"}}};
  }();
  return kTable;
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const KindRow& row : kind_table()) names.emplace_back(row.name);
  return names;
}

void require_keys(const KindRow& row, const std::vector<std::string>& given,
                  std::vector<Problem>& problems) {
  for (const std::string_view key : row.required) {
    if (std::find(given.begin(), given.end(), key) != given.end()) continue;
    problems.push_back({"--requests " + std::string(row.name),
                        "must have " + std::string(key) + ": " +
                            std::string(request_fields().find(key)->doc().help)});
  }
}

void check_together(const RequestSource& source, const std::vector<std::string>& given,
                    std::vector<Problem>& problems) {
  const auto has = [&given](std::string_view key) {
    return std::find(given.begin(), given.end(), key) != given.end();
  };
  if (source.kind == ArrivalKind::kBurst && has("size") != has("every")) {
    problems.push_back({"--requests burst", "must have size and every, or neither"});
  }
  if (source.prefix && source.input && source.input->kind != LengthKind::kEmpirical &&
      *source.prefix > source.input->high) {
    problems.push_back({"--requests prefix", "must be at most input, which has " +
                                                 std::to_string(source.input->high) +
                                                 " tokens, is " + std::to_string(*source.prefix)});
  }
  if (has("prefixes") && !has("prefix")) {
    problems.push_back(
        {"--requests prefixes", "must stand with prefix, the tokens that are shared"});
  }
}

void add_arrival_fields(FieldTable<RequestSource>& table) {
  table.theme("Arrivals");
  table.add("rate", &RequestSource::rate, Limits::between(kLeastRate, kMostRate),
            {.help = "Requests a second, on average."});
  table.add("burstiness", &RequestSource::burstiness, Limits::between(0.01, 1000),
            {.help = "Shape of the gamma distribution of the times between requests.",
             .advice = "1 is poisson, below 1 they come in bunches, above 1 more evenly. The "
                       "variance is 1 / burstiness of that of poisson."});
  table.add("count", &RequestSource::count, Limits::between(1, static_cast<double>(kMostRequests)),
            {.help = "Number of requests.", .unset = "of a file: all"});
  table.add("size", &RequestSource::size, Limits::between(1, static_cast<double>(kMostRequests)),
            {.help = "Requests of a burst, which come at one instant.",
             .unset = "all come at the start"});
  table.add("every", &RequestSource::every, Limits::between(1e-12, kMostSeconds),
            {.help = "Time from burst to burst."});
  table.add("concurrency", &RequestSource::concurrency,
            Limits::between(1, static_cast<double>(kMostRequests)),
            {.help = "Requests in the system: the next comes when one has ended."});
  table.add("think", &RequestSource::think, Limits::between(0, kMostSeconds),
            {.help = "Time from the end of a request to the one that follows it.", .unset = "0"});
  table.add("where", &RequestSource::where,
            {.help = "COLUMN:VALUE: rows of the file to take, as in where=trace:azure_2023_conv."});
  table.add("seed", &RequestSource::seed, Limits::between(0, kMostSeed),
            {.help = "Seed of all that is random about these requests."});
}

void add_content_fields(FieldTable<RequestSource>& table) {
  table.theme("Contents");
  table.add("input", &RequestSource::input,
            {.help = "Tokens of a prompt: 1024, uniform:512-1024, lognormal:900:0.8:8192 (median, "
                     "sigma, most) or empirical:FILE.csv."});
  table.add("output", &RequestSource::output, {.help = "Tokens of an answer, written likewise."});
  table.add("prefix", &RequestSource::prefix, Limits::between(1, kMostRequestTokens),
            {.help = "Tokens at the beginning of prompts that requests share.", .unset = "none"});
  table.add("prefixes", &RequestSource::prefixes, Limits::between(1, 1 << 24),
            {.help = "Different beginnings; each request has one of them at random."});
  table.add("tenant", &RequestSource::tenant,
            {.help = "Name of these requests in the result.", .unset = "the kind of requests"});
  table.add("priority", &RequestSource::priority, Limits::between(-1e6, 1e6),
            {.help = "Lower ones go first in engines with policy=priority."});
}

}  // namespace

std::string_view name_of(ArrivalKind kind) {
  return kind_table()[static_cast<std::size_t>(kind)].name;
}

const FieldTable<RequestSource>& request_fields() {
  static const FieldTable<RequestSource> kTable = [] {
    FieldTable<RequestSource> table("Requests");
    add_arrival_fields(table);
    add_content_fields(table);
    return table;
  }();
  return kTable;
}

RequestSource read_request_source(std::string_view text, std::vector<Problem>& problems) {
  RequestSource source;
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string kind(text.substr(0, colon));
  const std::vector<std::string> names = kind_names();
  const auto found = std::find(names.begin(), names.end(), kind);
  if (found == names.end() || colon == text.size()) {
    problems.push_back({"--requests",
                        "must be a kind and its keys, as in poisson:rate=4,count=100,"
                        "input=1024,output=128; is \"" +
                            shortened(text) + "\"" +
                            did_you_mean(kind, names, "The kinds are: " + comma_separated(names))});
    return source;
  }
  source.kind = static_cast<ArrivalKind>(found - names.begin());
  std::string_view keys = text.substr(colon + 1);
  if (source.kind == ArrivalKind::kFile) {
    const std::size_t comma = std::min(keys.find(','), keys.size());
    source.file = keys.substr(0, comma);
    keys.remove_prefix(std::min(comma + 1, keys.size()));
    if (source.file.empty()) {
      problems.push_back({"--requests file", "must name a file, as in file:trace.csv"});
    }
  }
  const KindRow& row = kind_table()[static_cast<std::size_t>(source.kind)];
  Keys allowed = row.required;
  allowed.insert(allowed.end(), row.others.begin(), row.others.end());
  const std::vector<std::string> given =
      read_assignments(keys, request_fields(), &source,
                       {.option = "--requests", .allowed = allowed, .who = row.name}, problems);
  require_keys(row, given, problems);
  check_together(source, given, problems);
  return source;
}

}  // namespace stepsim
