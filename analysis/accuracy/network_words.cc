#include "analysis/accuracy/network_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "analysis/accuracy/words.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

// A text is a list of words: numbers, and what stands between them. "400Gb/s" is two, "8xNDR"
// three.
struct Word {
  std::string text;        // in small letters
  std::string as_written;  // tells bits from bytes
  std::optional<double> number = std::nullopt;
};

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// Returns Gb/s of four lanes of a generation of InfiniBand.
std::optional<double> generation(std::string_view word) {
  static constexpr std::array<std::pair<std::string_view, double>, 6> kGenerations = {
      {{"qdr", 40}, {"fdr", 56}, {"edr", 100}, {"hdr", 200}, {"ndr", 400}, {"xdr", 800}}};
  const auto* const found =
      std::ranges::find(kGenerations, word, [](const auto& one) { return one.first; });
  return found == kGenerations.end() ? std::nullopt : std::optional(found->second);
}

// Returns where the number that begins at `at` ends.
std::size_t end_of_number(std::string_view text, std::size_t at) {
  const auto digit_at = [text](std::size_t i) { return i < text.size() && is_digit(text[i]); };
  while (digit_at(at) || (at < text.size() && text[at] == '.' && digit_at(at + 1))) ++at;
  return at;
}

// Returns where the letters that begin at `at` end. They may hold "/" or "-" before a letter (Gb/s,
// GPU-PCIe), and end with "-" and digits (ConnectX-7).
std::size_t end_of_letters(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const char next = at + 1 < text.size() ? text[at + 1] : ' ';
    if (text[at] == '-' && is_digit(next)) return end_of_number(text, at + 1);
    const bool joins = (text[at] == '-' || text[at] == '/') && is_letter(next);
    if (!is_letter(text[at]) && !joins) break;
    ++at;
  }
  return at;
}

// Returns the end of the word that begins at `at`. An x behind a number stands alone: 8x400G,
// 8xNDR.
std::size_t end_of_word(std::string_view text, std::size_t at) {
  if (is_digit(text[at])) return end_of_number(text, at);
  if (text[at] == '*') return at + 1;
  const std::size_t end = end_of_letters(text, at);
  const bool times = (text[at] == 'x' || text[at] == 'X') && at > 0 && is_digit(text[at - 1]);
  return times && generation(in_small_letters(text.substr(at + 1, end - at - 1))) ? at + 1 : end;
}

std::vector<Word> words_of(std::string_view clause) {
  std::vector<Word> words;
  for (std::size_t at = 0; at < clause.size();) {
    constexpr std::string_view kTimes = "\u00d7";
    if (clause.substr(at).starts_with(kTimes)) {
      words.push_back({.text = "x", .as_written = "x"});
      at += kTimes.size();
      continue;
    }
    if (!is_digit(clause[at]) && !is_letter(clause[at]) && clause[at] != '*') {
      ++at;
      continue;
    }
    const std::size_t end = end_of_word(clause, at);
    const std::string_view text = clause.substr(at, end - at);
    words.push_back({.text = in_small_letters(text), .as_written = std::string(text)});
    if (is_digit(clause[at])) words.back().number = number_in<double>(words.back().text);
    at = end;
  }
  return words;
}

// Returns Gb/s of one of a unit. A capital B is a byte, except in Gbit, GbE and where all letters
// are capital.
std::optional<double> gigabits_of(const Word& unit) {
  static constexpr std::array<std::string_view, 13> kEndings = {
      "",      "b",  "b/s",    "bps",     "bit",  "bit/s",  "bits/s",
      "b/sec", "be", "byte/s", "bytes/s", "ib/s", "bit/sec"};
  if (unit.text.empty()) return std::nullopt;
  const std::string ending = unit.text.substr(1);
  if (std::ranges::find(kEndings, ending) == kEndings.end()) return std::nullopt;
  const double prefix = unit.text[0] == 't'   ? 1000
                        : unit.text[0] == 'g' ? 1
                        : unit.text[0] == 'm' ? 1e-3
                                              : 0;
  if (prefix == 0) return std::nullopt;
  const bool bytes = ending.starts_with("byte") || unit.as_written.substr(1) == "B" ||
                     unit.as_written.substr(1) == "B/s" || unit.as_written.substr(1) == "Bps";
  return prefix * (bytes ? 8 : 1);
}

// What one clause says.
struct Clause {
  bool compute = false;  // "Compute: ..."
  bool other = false;    // a network for something else, or bandwidth inside a node
  bool per_node = false;
  bool per_chip = false;
  bool not_stated = false;
  bool by_machine = false;  // networks whose rates are a machine's: EFA
  std::optional<double> cards;
  std::optional<double> gigabits;    // of what the clause counts
  std::optional<double> generation;  // by name
};

class ClauseReader {
 public:
  explicit ClauseReader(std::string_view clause) : words_(words_of(clause)) {
    for (std::size_t at = 0; at < words_.size(); ++at) {
      if (words_[at].number) {
        read_number(at);
      } else {
        read_word(at);
      }
    }
  }
  const Clause& clause() const { return clause_; }

 private:
  std::string_view word(std::size_t at) const {
    return at < words_.size() ? std::string_view(words_[at].text) : std::string_view();
  }

  void read_number(std::size_t at) {
    const double number = *words_[at].number;
    const bool after_times = at > 0 && is_word_of(word(at - 1), {"x", "*"});
    const auto unit = at + 1 < words_.size() ? gigabits_of(words_[at + 1]) : std::nullopt;
    if (unit) {
      clause_.gigabits = std::max(clause_.gigabits.value_or(0), number * *unit);
    } else if (named_before(at) && (number == 100 || number == 200 || number == 400)) {
      clause_.gigabits = number;  // "NDR 400", "NDR400", two lanes of "HDR100"
    } else if (is_word_of(word(at + 1), {"x", "*", "cards", "nics", "hcas", "ports", "adapters"})) {
      clause_.cards = number;
    } else if (after_times && at + 1 == words_.size() && !clause_.cards) {
      clause_.cards = number;  // "400 Gb/s x 8"
    }
  }

  std::optional<double> named_before(std::size_t at) const {
    return at == 0 ? std::nullopt : stepsim::generation(word(at - 1));
  }

  void read_word(std::size_t at) {
    const std::string_view now = word(at);
    if (const auto name = stepsim::generation(now)) clause_.generation = name;
    if (now == "compute") clause_.compute = true;
    if (is_word_of(now, {"unknown", "n/a"}) || (now == "not" && word(at + 1) == "stated")) {
      clause_.not_stated = true;
    }
    if (now.starts_with("efa") || now.starts_with("tcpx") || now.starts_with("gpudirect-tcpx")) {
      clause_.by_machine = true;
    }
    if (is_word_of(now,
                   {"storage", "management", "pcie", "gpu-pcie", "pcie-nic", "nvlink", "dpu"})) {
      clause_.other = true;
    }
    if (!is_word_of(now, {"per", "a", "each", "every"})) return;
    const std::string_view what = word(at + 1);
    clause_.per_node |= is_word_of(what, {"node", "host", "server", "machine", "vm", "instance"});
    clause_.per_chip |= is_word_of(what, {"gpu", "chip", "accelerator", "device", "tpu", "gcd"});
  }

  std::vector<Word> words_;
  Clause clause_;
};

// A comma, a semicolon or a plus ends a clause.
std::vector<Clause> clauses_of(std::string_view text) {
  std::vector<Clause> clauses;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(",;+"), text.size());
    clauses.push_back(ClauseReader(text.substr(0, end)).clause());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return clauses;
}

std::optional<double> gigabits_of_node(const Clause& clause, std::int64_t chips) {
  const auto rate = clause.gigabits ? clause.gigabits : clause.generation;
  if (!rate) return std::nullopt;
  const double cards =
      clause.cards.value_or(1) * (clause.per_chip ? static_cast<double>(chips) : 1);
  return clause.cards || clause.per_chip || clause.per_node ? std::optional(cards * *rate)
                                                            : std::nullopt;
}

Bandwidth in_bandwidth(double gigabits) {
  return Bandwidth(gigabits * 1e9 / 8);
}

// Of a rate without a count.
std::optional<NodeNetwork> without_count(const Clause& clause, std::int64_t chips, Bandwidth card) {
  const auto rate = clause.gigabits ? clause.gigabits : clause.generation;
  if (!rate || *rate <= 0 || clause.not_stated) return std::nullopt;
  constexpr double kLeast = 200;
  constexpr double kMost = 400;
  const double most = std::max(kMost, card.value() * 8 / 1e9);
  const bool of_card = !clause.gigabits || (*rate >= kLeast && *rate <= most);
  if (clause.by_machine || !of_card) {
    return NodeNetwork{in_bandwidth(*rate), "the rate is the node's"};
  }
  return NodeNetwork{in_bandwidth(*rate * static_cast<double>(chips)),
                     "each chip has a card of the rate"};
}

}  // namespace

std::optional<NodeNetwork> network_of_node(std::string_view text, std::int64_t chips,
                                           Bandwidth card) {
  std::vector<Clause> clauses = clauses_of(text);
  const bool says_compute = std::ranges::any_of(clauses, &Clause::compute);
  std::erase_if(clauses, [says_compute](const Clause& clause) {
    return clause.other || (says_compute && !clause.compute);
  });
  double largest = 0;
  Clause together;  // "8 HCAs, 200 Gb/s each"
  for (const Clause& clause : clauses) {
    largest = std::max(largest, gigabits_of_node(clause, chips).value_or(0));
    if (clause.cards) together.cards = clause.cards;
    if (clause.gigabits) together.gigabits = clause.gigabits;
    if (clause.generation) together.generation = clause.generation;
    together.not_stated |= clause.not_stated;
    together.by_machine |= clause.by_machine;
  }
  if (largest == 0) largest = gigabits_of_node(together, chips).value_or(0);
  if (largest > 0) return NodeNetwork{in_bandwidth(largest)};
  return together.cards ? std::nullopt : without_count(together, chips, card);
}

}  // namespace stepsim
