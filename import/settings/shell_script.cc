#include "import/settings/shell_script.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostWords = 200'000;
constexpr std::size_t kMostText = 16ULL << 20;
constexpr int kMostExpansions = 20;  // of variables in variables

// A part of a word as it is written.
struct RawPart {
  std::string text;
  bool is_quoted = false;   // in single or double quotes
  bool is_literal = false;  // in single quotes, or escaped: nothing is expanded
};

enum class TokenKind : std::uint8_t { kWord, kEnd, kOpen, kClose, kAnd, kOr };

struct Token {
  TokenKind kind = TokenKind::kWord;
  std::vector<RawPart> parts{};
  std::size_t line = 0;

  // Returns the text of a word without quotes; expansions stay as they are.
  std::string plain() const {
    std::string text;
    for (const RawPart& part : parts) text += part.text;
    return text;
  }
  bool is_bare(std::string_view word) const {
    return kind == TokenKind::kWord && parts.size() == 1 && !parts[0].is_quoted &&
           parts[0].text == word;
  }
};

bool is_name_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_shell_name(std::string_view name) {
  return !name.empty() && !is_digit(name[0]) && std::ranges::all_of(name, is_name_letter);
}

// ---- cutting a text into tokens ----

class ShellLexer {
 public:
  ShellLexer(std::string_view text, std::size_t line) : text_(text), line_(line) {}

  std::vector<Token> tokens() {
    while (at_ < text_.size()) step();
    end_word();
    push(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void push(TokenKind kind) { tokens_.push_back({.kind = kind, .line = line_}); }

  void begin_word() {
    if (is_in_word_) return;
    is_in_word_ = true;
    word_ = {.kind = TokenKind::kWord, .line = line_};
  }
  void end_word() {
    if (!is_in_word_) return;
    is_in_word_ = false;
    tokens_.push_back(std::move(word_));
  }
  void add(char c, bool is_quoted, bool is_literal) {
    begin_word();
    if (word_.parts.empty() || word_.parts.back().is_quoted != is_quoted ||
        word_.parts.back().is_literal != is_literal) {
      word_.parts.push_back({.text = "", .is_quoted = is_quoted, .is_literal = is_literal});
    }
    word_.parts.back().text += c;
  }

  void step() {
    const char c = text_[at_];
    if (c == '\\') return escape();
    if (c == '\'') return single_quotes();
    if (c == '"') return double_quotes();
    if (c == '$' && (peek(1) == '(' || peek(1) == '{')) return nested(false);
    if (c == '`') return backticks(false);
    if (c == '#' && !is_in_word_) return comment();
    if (c == '\n') {
      end_word();
      push(TokenKind::kEnd);
      ++line_;
      ++at_;
      return;
    }
    if (c == ' ' || c == '\t' || c == '\r') {
      end_word();
      ++at_;
      return;
    }
    if (c == '<' && peek(1) == '<' && peek(2) != '<') return heredoc_mark();
    if (c == ';' || c == '&' || c == '|') return operators(c);
    if (c == '(' || c == ')') {
      // ARRAY=( begins an array; the word before it ends with "=".
      const bool is_array =
          c == '(' && is_in_word_ && !word_.parts.empty() && word_.parts.back().text.ends_with("=");
      end_word();
      push(c == '(' ? TokenKind::kOpen : TokenKind::kClose);
      if (c == '(' && !is_array) tokens_.back().kind = TokenKind::kEnd;
      ++at_;
      return;
    }
    add(c, false, false);
    ++at_;
  }

  void escape() {
    const char next = peek(1);
    if (next == '\n') ++line_;
    if (next == '\r' && peek(2) == '\n') {
      ++line_;
      ++at_;
    } else if (next != '\n' && next != '\0') {
      add(next, false, true);
    }
    at_ = std::min(at_ + 2, text_.size());
  }

  void single_quotes() {
    begin_word();
    word_.parts.push_back({.text = "", .is_quoted = true, .is_literal = true});
    for (++at_; at_ < text_.size() && text_[at_] != '\''; ++at_) {
      if (text_[at_] == '\n') ++line_;
      word_.parts.back().text += text_[at_];
    }
    if (at_ < text_.size()) ++at_;
  }

  void double_quotes() {
    begin_word();
    word_.parts.push_back({.text = "", .is_quoted = true});
    for (++at_; at_ < text_.size() && text_[at_] != '"';) {
      const char c = text_[at_];
      if (c == '$' && (peek(1) == '(' || peek(1) == '{')) {
        nested(true);
        continue;
      }
      if (c == '`') {
        backticks(true);
        continue;
      }
      if (c == '\\' && peek(1) == '\n') {
        // Kept as a line end, so that lines can be counted.
        word_.parts.back().text += '\n';
        ++line_;
        at_ += 2;
        continue;
      }
      if (c == '\\' && (peek(1) == '"' || peek(1) == '$' || peek(1) == '\\' || peek(1) == '`')) {
        add(peek(1), true, true);
        word_.parts.push_back({.text = "", .is_quoted = true});
        at_ += 2;
        continue;
      }
      if (c == '\n') ++line_;
      add(c, true, false);
      ++at_;
    }
    if (at_ < text_.size()) ++at_;
  }

  // ${...}, $(...) and $((...)), as they are written.
  void nested(bool is_quoted) {
    const char open = peek(1);
    const char close = open == '{' ? '}' : ')';
    int depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c == open) ++depth;
      add(c, is_quoted, false);
      ++at_;
      if (c == close && --depth == 0) return;
    }
  }

  void backticks(bool is_quoted) {
    std::string command = "$(";
    for (++at_; at_ < text_.size() && text_[at_] != '`'; ++at_) {
      if (text_[at_] == '\n') ++line_;
      command += text_[at_] == '(' || text_[at_] == ')' ? ' ' : text_[at_];
    }
    if (at_ < text_.size()) ++at_;
    for (const char c : command + ")") add(c, is_quoted, false);
  }

  void comment() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }

  void operators(char c) {
    end_word();
    if (c == '&' && (peek(1) == '>' || (at_ > 0 && text_[at_ - 1] == '>'))) {
      ++at_;
      return;
    }
    const bool is_double = peek(1) == c;
    push(is_double && c == '&'   ? TokenKind::kAnd
         : is_double && c == '|' ? TokenKind::kOr
                                 : TokenKind::kEnd);
    at_ += is_double ? 2 : 1;
  }

  // <<NAME: the lines up to NAME are read as commands, as sbatch gets them. The line that ends them
  // is a command of that name, which nobody looks for.
  void heredoc_mark() {
    end_word();
    at_ += 2;
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) == 0) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  bool is_in_word_ = false;
  Token word_;
  std::vector<Token> tokens_;
};

// ---- values ----

class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& given) {
    for (const auto& [name, value] : given) {
      set(name, {{value, 0}}, false, false);
      given_.push_back(name);
    }
  }

  // `is_array`: each word is an element.
  void set(const std::string& name, std::vector<ShellWord> words, bool is_array, bool appends) {
    if (std::ranges::find(given_, name) != given_.end()) return;
    auto [found, is_new] = values_.try_emplace(name);
    if (is_new) order_.push_back(name);
    Value& value = found->second;
    if (!appends) {
      value.words = std::move(words);
    } else if (is_array || value.is_array) {
      for (ShellWord& word : words) value.words.push_back(std::move(word));
    } else if (!words.empty()) {
      if (value.words.empty()) value.words.push_back({"", words[0].line});
      value.words[0].text += words[0].text;
    }
    value.is_array = is_array || (appends && value.is_array);
    std::size_t size = 0;
    for (const ShellWord& word : value.words) size += word.text.size();
    spent_ += size + value.words.size();
  }

  const std::vector<ShellWord>* find(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second.words;
  }
  const std::vector<std::string>& order() const { return order_; }

  // Work is bounded: what was assigned and expanded so far, in characters.
  bool spend(std::size_t characters) {
    spent_ += characters;
    return spent_ <= 4 * kMostText;
  }
  bool is_spent() const { return spent_ > 4 * kMostText; }

 private:
  struct Value {
    std::vector<ShellWord> words{};
    bool is_array = false;
  };
  std::map<std::string, Value, std::less<>> values_;
  std::vector<std::string> order_;
  std::vector<std::string> given_;
  std::size_t spent_ = 0;
};

// Whole numbers with + - * / % and parentheses, as of $((...)).
class Arithmetic {
 public:
  Arithmetic(std::string_view text, const Variables& variables)
      : text_(text), variables_(&variables) {}

  std::optional<std::int64_t> value() {
    const auto result = sum(0);
    skip();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  static constexpr int kMostDepth = 50;

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  char next() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::optional<std::int64_t> sum(int depth) {
    auto left = product(depth);
    while (left && (next() == '+' || next() == '-')) {
      const char sign = text_[at_++];
      const auto right = product(depth);
      if (!right) return std::nullopt;
      std::int64_t result = 0;
      const bool is_bad = sign == '+' ? __builtin_add_overflow(*left, *right, &result)
                                      : __builtin_sub_overflow(*left, *right, &result);
      if (is_bad) return std::nullopt;
      left = result;
    }
    return left;
  }

  std::optional<std::int64_t> product(int depth) {
    auto left = atom(depth);
    while (left && (next() == '*' || next() == '/' || next() == '%')) {
      const char sign = text_[at_++];
      const auto right = atom(depth);
      if (!right) return std::nullopt;
      std::int64_t result = 0;
      if (sign == '*') {
        if (__builtin_mul_overflow(*left, *right, &result)) return std::nullopt;
      } else {
        if (*right <= 0) return std::nullopt;
        result = sign == '/' ? *left / *right : *left % *right;
      }
      left = result;
    }
    return left;
  }

  std::optional<std::int64_t> atom(int depth) {
    const char c = next();
    if (c == '(' && depth < kMostDepth) {
      ++at_;
      const auto inner = sum(depth + 1);
      if (next() != ')') return std::nullopt;
      ++at_;
      return inner;
    }
    std::string name;
    while (at_ < text_.size() && (is_name_letter(text_[at_]) || text_[at_] == '$' ||
                                  text_[at_] == '{' || text_[at_] == '}')) {
      if (is_name_letter(text_[at_])) name += text_[at_];
      ++at_;
    }
    if (const auto number = number_in<std::int64_t>(name)) return number;
    const std::vector<ShellWord>* const words = variables_->find(name);
    if (words == nullptr || words->size() != 1) return std::nullopt;
    return number_in<std::int64_t>((*words)[0].text);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  const Variables* variables_;
};

// Turns words as they are written into words as a command gets them.
class Expander {
 public:
  explicit Expander(Variables& variables) : variables_(&variables) {}

  // `splits`: unquoted values are cut at blanks. `unknown_is_empty`: as in conditions.
  std::vector<ShellWord> expand(const Token& token, bool splits, bool unknown_is_empty) {
    words_.clear();
    current_ = {"", token.line};
    has_current_ = false;
    splits_ = splits;
    unknown_is_empty_ = unknown_is_empty;
    for (const RawPart& part : token.parts) {
      if (part.is_quoted) has_current_ = true;
      if (part.is_literal) {
        append(part.text);
      } else {
        expand_part(part.text, part.is_quoted, 0);
      }
    }
    finish_word();
    return std::move(words_);
  }

 private:
  void append(std::string_view text) {
    if (!variables_->spend(text.size() + 1)) return;
    current_.text += text;
    has_current_ = true;
  }
  void finish_word() {
    if (!has_current_) return;
    words_.push_back(current_);
    current_.text.clear();
    has_current_ = false;
  }

  void append_value(const std::vector<ShellWord>& value, bool is_quoted, bool is_all) {
    if (is_quoted && (!is_all || !splits_)) {
      for (std::size_t i = 0; i < value.size(); ++i) append((i > 0 ? " " : "") + value[i].text);
      return;
    }
    if (is_quoted) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (i > 0) finish_word();
        if (current_.text.empty()) current_.line = value[i].line;
        append(value[i].text);
      }
      return;
    }
    for (const ShellWord& element : value) {
      if (&element != value.data() && splits_) finish_word();
      if (!splits_) {
        append((&element == value.data() ? "" : " ") + element.text);
        continue;
      }
      const std::vector<ShellWord> cut = words_with_lines(element.text, element.line);
      for (std::size_t i = 0; i < cut.size(); ++i) {
        if (i > 0) finish_word();
        if (current_.text.empty() && cut[i].line != 0) current_.line = cut[i].line;
        append(cut[i].text);
      }
    }
  }

  void expand_part(std::string_view text, bool is_quoted, int depth) {
    for (std::size_t at = 0; at < text.size();) {
      if (variables_->is_spent()) return;
      const std::size_t dollar = text.find('$', at);
      append_text(text.substr(at, dollar - at));
      if (dollar == std::string_view::npos) return;
      at = expand_one(text, dollar, is_quoted, depth);
    }
  }
  void append_text(std::string_view text) {
    if (!text.empty()) append(text);
  }

  // Returns the place behind the expansion that begins at the dollar.
  std::size_t expand_one(std::string_view text, std::size_t dollar, bool is_quoted, int depth) {
    const char next = dollar + 1 < text.size() ? text[dollar + 1] : '\0';
    if (next == '{' || next == '(') {
      const std::size_t end = closing(text, dollar + 1);
      if (end == std::string_view::npos) {
        append(text.substr(dollar));
        return text.size();
      }
      const std::string_view whole = text.substr(dollar, end + 1 - dollar);
      const std::string_view inner = whole.substr(2, whole.size() - 3);
      if (next == '{') {
        expand_braces(whole, inner, is_quoted, depth);
      } else if (inner.starts_with('(') && inner.ends_with(')')) {
        const auto value = Arithmetic(inner.substr(1, inner.size() - 2), *variables_).value();
        value ? append(std::to_string(*value)) : unknown(whole);
      } else {
        unknown(whole);
      }
      return end + 1;
    }
    std::size_t end = dollar + 1;
    while (end < text.size() && is_name_letter(text[end])) ++end;
    if (end == dollar + 1) {
      if (next == '@' || next == '*') return dollar + 2;  // arguments of the script: none are known
      append("$");
      return dollar + 1;
    }
    const std::string_view name = text.substr(dollar + 1, end - dollar - 1);
    const std::vector<ShellWord>* const value = variables_->find(name);
    value == nullptr ? unknown(text.substr(dollar, end - dollar))
                     : append_value(*value, is_quoted, false);
    return end;
  }

  static std::size_t closing(std::string_view text, std::size_t open) {
    const char begin = text[open];
    const char end = begin == '{' ? '}' : ')';
    int depth = 0;
    for (std::size_t i = open; i < text.size(); ++i) {
      if (text[i] == begin) ++depth;
      if (text[i] == end && --depth == 0) return i;
    }
    return std::string_view::npos;
  }

  void unknown(std::string_view as_written) {
    if (!unknown_is_empty_) append(as_written);
  }

  void expand_braces(std::string_view whole, std::string_view inner, bool is_quoted, int depth) {
    std::size_t end = 0;
    while (end < inner.size() && is_name_letter(inner[end])) ++end;
    const std::string_view name = inner.substr(0, end);
    std::string_view rest = inner.substr(end);
    const bool is_all = rest.starts_with("[@]") || rest.starts_with("[*]");
    if (is_all) rest.remove_prefix(3);
    const std::vector<ShellWord>* const value = variables_->find(name);
    const bool is_set = value != nullptr && (rest.starts_with('-') || value->size() > 1 ||
                                             (value->size() == 1 && !(*value)[0].text.empty()));
    if (rest.empty()) {
      if (value != nullptr) return append_value(*value, is_quoted, is_all);
      return unknown(whole);
    }
    const std::size_t sign = rest.starts_with(':') ? 1 : 0;
    const char kind = rest.size() > sign ? rest[sign] : '\0';
    if (kind == '-' || kind == '=') {
      if (is_set) return append_value(*value, is_quoted, is_all);
      if (depth > kMostExpansions) return unknown(whole);
      std::string_view otherwise = rest.substr(sign + 1);
      if (otherwise.size() >= 2 && (otherwise.front() == '"' || otherwise.front() == '\'') &&
          otherwise.back() == otherwise.front()) {
        otherwise = otherwise.substr(1, otherwise.size() - 2);
      }
      return expand_part(otherwise, is_quoted, depth + 1);
    }
    if (kind == '+') {
      if (is_set && depth <= kMostExpansions) {
        expand_part(rest.substr(sign + 1), is_quoted, depth + 1);
      }
      return;
    }
    unknown(whole);
  }

  Variables* variables_;
  std::vector<ShellWord> words_;
  ShellWord current_;
  bool has_current_ = false;
  bool splits_ = true;
  bool unknown_is_empty_ = false;
};

// ---- running through the script ----

class ShellReader {
 public:
  ShellReader(std::vector<Token> tokens, const std::map<std::string, std::string>& given)
      : tokens_(std::move(tokens)), variables_(given), expander_(variables_) {}

  ShellScript read() {
    while (at_ < tokens_.size() && !is_too_much()) command();
    ShellScript script;
    script.commands = std::move(commands_);
    for (const std::string& name : variables_.order()) {
      script.variables.emplace_back(name, *variables_.find(name));
    }
    return script;
  }

  bool is_too_much() const { return words_ > kMostWords || variables_.is_spent(); }

 private:
  struct Branch {
    bool is_taken = false;   // this one
    bool was_taken = false;  // this one or one before
    bool outside = true;     // what surrounds the whole `if` runs
  };

  bool runs() const { return branches_.empty() || branches_.back().is_taken; }

  void command() {
    const Token& token = tokens_[at_];
    if (token.kind != TokenKind::kWord) {
      ++at_;
      return;
    }
    if (token.is_bare("if")) return begin_if();
    if (token.is_bare("elif")) return else_if();
    if (token.is_bare("else")) return otherwise();
    if (token.is_bare("fi")) {
      if (!branches_.empty()) branches_.pop_back();
      ++at_;
      return;
    }
    for (const char* const word : {"then", "do", "done", "{", "}", "!", "export", "local",
                                   "readonly", "declare", "exec", "time"}) {
      if (token.is_bare(word)) {
        ++at_;
        return;
      }
    }
    simple();
  }

  // Reads words up to the end of the command. Assignments at its beginning are done.
  void simple() {
    ShellCommand made;
    bool begins = true;
    while (at_ < tokens_.size() && tokens_[at_].kind == TokenKind::kWord && !is_too_much()) {
      if (begins && assignment()) continue;
      begins = false;
      const Token& token = tokens_[at_++];
      if (!runs()) continue;
      for (ShellWord& word : expander_.expand(token, true, false)) {
        ++words_;
        made.words.push_back(std::move(word));
      }
    }
    if (!made.words.empty()) commands_.push_back(std::move(made));
    if (at_ < tokens_.size() && tokens_[at_].kind != TokenKind::kWord) ++at_;
  }

  // NAME=value, NAME+=value, NAME=( words ), and the same behind export.
  bool assignment() {
    const Token& token = tokens_[at_];
    const std::string text =
        token.parts.empty() || token.parts[0].is_quoted ? "" : token.parts[0].text;
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) return false;
    const bool appends = text[equals - 1] == '+';
    const std::string name = text.substr(0, equals - (appends ? 1 : 0));
    if (!is_shell_name(name)) return false;
    const bool is_array = token.parts.size() == 1 && equals + 1 == text.size() &&
                          at_ + 1 < tokens_.size() && tokens_[at_ + 1].kind == TokenKind::kOpen;
    if (is_array) {
      at_ += 2;
      array(name, appends);
      return true;
    }
    Token value = token;
    value.parts[0].text = text.substr(equals + 1);
    ++at_;
    if (!runs()) return true;
    std::vector<ShellWord> words = expander_.expand(value, false, false);
    if (words.empty()) words.push_back({"", token.line});
    words.resize(1);
    // A value that names itself is not known.
    variables_.set(name, std::move(words), false, appends);
    return true;
  }

  void array(const std::string& name, bool appends) {
    std::vector<ShellWord> elements;
    for (; at_ < tokens_.size() && tokens_[at_].kind != TokenKind::kClose; ++at_) {
      if (tokens_[at_].kind != TokenKind::kWord || !runs() || is_too_much()) continue;
      for (ShellWord& word : expander_.expand(tokens_[at_], true, false)) {
        ++words_;
        elements.push_back(std::move(word));
      }
    }
    if (at_ < tokens_.size()) ++at_;
    if (runs()) variables_.set(name, std::move(elements), true, appends);
  }

  void begin_if() {
    ++at_;
    const bool outside = runs();
    const bool is_true = outside && condition();
    if (!outside) skip_condition();
    branches_.push_back({.is_taken = is_true, .was_taken = is_true, .outside = outside});
  }

  void else_if() {
    ++at_;
    if (branches_.empty()) return;
    Branch& branch = branches_.back();
    branch.is_taken = false;
    const bool may = branch.outside && !branch.was_taken;
    const bool is_true = may && condition();
    if (!may) skip_condition();
    branches_.back().is_taken = is_true;
    branches_.back().was_taken |= is_true;
  }

  void otherwise() {
    ++at_;
    if (branches_.empty()) return;
    Branch& branch = branches_.back();
    branch.is_taken = branch.outside && !branch.was_taken;
    branch.was_taken = true;
  }

  void skip_condition() {
    while (at_ < tokens_.size() && !tokens_[at_].is_bare("then")) ++at_;
  }

  // Tests joined by && and ||, from left to right; also the words between [[ and ]].
  bool condition() {
    bool value = false;
    TokenKind joined = TokenKind::kOr;
    while (at_ < tokens_.size() && !tokens_[at_].is_bare("then")) {
      std::vector<std::string> words;
      for (; at_ < tokens_.size() && tokens_[at_].kind == TokenKind::kWord &&
             !tokens_[at_].is_bare("then");
           ++at_) {
        const Token& token = tokens_[at_];
        std::string word;
        for (const ShellWord& part : expander_.expand(token, false, true)) word += part.text;
        const bool is_bracket = token.is_bare("[") || token.is_bare("[[") || token.is_bare("]") ||
                                token.is_bare("]]") || token.is_bare("test");
        if (!is_bracket) words.push_back(std::move(word));
      }
      if (!words.empty()) {
        const bool test = holds(words);
        value = joined == TokenKind::kOr ? value || test : value && test;
      }
      if (at_ < tokens_.size() && !tokens_[at_].is_bare("then")) {
        const TokenKind kind = tokens_[at_++].kind;
        if (kind == TokenKind::kAnd || kind == TokenKind::kOr) joined = kind;
      }
    }
    return value;
  }

  static bool holds(std::vector<std::string> words) {
    bool negated = false;
    while (!words.empty() && words[0] == "!") {
      negated = !negated;
      words.erase(words.begin());
    }
    return decided(words) != negated;
  }

  static bool decided(const std::vector<std::string>& words) {
    if (words.size() == 1) return !words[0].empty();
    if (words.size() == 2) {
      if (words[0] == "-z") return words[1].empty();
      if (words[0] == "-n") return !words[1].empty();
      return false;
    }
    if (words.size() != 3) return false;
    const std::string& sign = words[1];
    if (sign == "=" || sign == "==") return words[0] == words[2];
    if (sign == "!=") return words[0] != words[2];
    const auto left = number_in<std::int64_t>(words[0]);
    const auto right = number_in<std::int64_t>(words[2]);
    if (!left || !right) return false;
    if (sign == "-eq") return *left == *right;
    if (sign == "-ne") return *left != *right;
    if (sign == "-gt" || sign == ">") return *left > *right;
    if (sign == "-lt" || sign == "<") return *left < *right;
    if (sign == "-ge") return *left >= *right;
    if (sign == "-le") return *left <= *right;
    return false;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Variables variables_;
  Expander expander_;
  std::vector<Branch> branches_;
  std::vector<ShellCommand> commands_;
  std::size_t words_ = 0;
};

}  // namespace

std::vector<ShellWord> words_with_lines(std::string_view text, std::size_t line) {
  std::vector<ShellWord> words;
  bool is_in_word = false;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      is_in_word = false;
      if (c == '\n' && line != 0) ++line;
      continue;
    }
    if (!is_in_word) words.push_back({"", line});
    is_in_word = true;
    words.back().text += c;
  }
  return words;
}

ShellScript read_shell_script(std::string_view text, const std::string& file,
                              const std::map<std::string, std::string>& given,
                              std::vector<Problem>& problems) {
  ShellReader reader(ShellLexer(text, 1).tokens(), given);
  ShellScript script = reader.read();
  if (reader.is_too_much()) problems.push_back({file, "has variables that multiply beyond 16 MiB"});
  return script;
}

}  // namespace stepsim
