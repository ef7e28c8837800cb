#include "proto/network_case/case_elements.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/network_case/case_text.h"

namespace stepsim {
namespace {

bool is_object_name(const std::string& key) {
  return key == "transport" || key == "switches";
}

bool is_list_name(const std::string& key) {
  return key == "links" || key == "flows" || key == "expect";
}

// Depth 1 is inside the root object, depth 2 inside a list.
class ElementReader final : public JsonEvents {
 public:
  ElementReader(const std::string& path, const CaseVisitor& visitor)
      : path_(path), visitor_(visitor) {}

  std::vector<Problem> take_problems() { return std::move(problems_); }

  bool key(std::string& name) override {
    if (element_.is_open()) {
      element_.key(name);
    } else {
      root_key_ = std::move(name);
      if (depth_ == 1 && !root_keys_.insert(root_key_).second) {
        problems_.push_back({root_key_, given_twice(root_key_)});
        return false;
      }
    }
    return true;
  }

  bool open(Json container) override {
    if (element_.is_open() || (depth_ == 2 && is_in_list_)) {
      element_.open(std::move(container));
    } else if (depth_ == 0 && !container.is_object()) {
      return stop("must be a JSON object, is a list");
    } else if (depth_ == 1 && is_object_name(root_key_) && container.is_object()) {
      element_.open(std::move(container));
    } else if (depth_ == 1) {
      begin_list(container);
    }
    ++depth_;
    return true;
  }

  bool close() override {
    --depth_;
    if (!element_.is_open()) return true;
    element_.close();
    if (element_.is_open()) return true;
    const bool is_object = depth_ == 1;
    if (const auto& key = element_.repeated_key()) {
      problems_.push_back(
          {root_key_ + (is_object ? "" : "[" + std::to_string(index_) + "]"), given_twice(*key)});
      return false;
    }
    if (is_object) {
      visitor_.value(root_key_, element_.root());
      return true;
    }
    visitor_.element(root_key_, index_++, element_.root());
    return true;
  }

  bool value(Json plain) override {
    if (element_.is_open()) {
      element_.value(std::move(plain));
    } else if (depth_ == 0) {
      return stop("must be a JSON object");
    } else if (depth_ == 1 && is_list_name(root_key_)) {
      problems_.push_back({root_key_, "must be a list"});
    } else if (depth_ == 1) {
      visitor_.value(root_key_, plain);
    } else if (depth_ == 2 && is_in_list_) {
      visitor_.element(root_key_, index_++, plain);
    }
    return true;
  }

 private:
  bool stop(const char* why) {
    problems_.push_back({path_, why});
    return false;
  }

  void begin_list(const Json& container) {
    is_in_list_ = false;
    index_ = 0;
    if (!is_list_name(root_key_)) return;
    is_in_list_ = container.is_array() && visitor_.wants(root_key_);
    if (!container.is_array()) problems_.push_back({root_key_, "must be a list"});
  }

  const std::string& path_;
  const CaseVisitor& visitor_;
  std::vector<Problem> problems_;
  int depth_ = 0;
  std::string root_key_;
  std::set<std::string> root_keys_;  // so far
  bool is_in_list_ = false;          // in the list whose elements are wanted
  std::size_t index_ = 0;            // in that list
  JsonTree element_;
};

}  // namespace

std::vector<Problem> read_case_elements(InputFile& file, const std::string& path,
                                        const CaseVisitor& visitor) {
  CaseText text(file);
  ElementReader reader(path, visitor);
  const std::string wrong = read_json(text, reader);
  // If the text breaks off, the parser's complaint is not the cause.
  if (!text.problem().empty()) return {{path, text.problem()}};
  std::vector<Problem> problems = reader.take_problems();
  if (!wrong.empty()) problems.push_back({path, "is not JSON: " + wrong});
  return problems;
}

}  // namespace stepsim
