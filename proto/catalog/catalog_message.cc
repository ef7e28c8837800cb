#include "proto/catalog/catalog_message.h"

#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "proto/hugging_face/hugging_face.h"

namespace stepsim {
namespace {

using ProtoMessage = google::protobuf::Message;

// KeptMessages holds what was read before, by the text of which it was read.
class KeptMessages {
 public:
  // Returns whether the message was kept, and copies it.
  bool find(const std::string& key, ProtoMessage& into) const {
    std::shared_ptr<const ProtoMessage> kept;
    {
      const std::lock_guard lock(mutex_);
      const auto found = messages_.find(key);
      if (found == messages_.end()) return false;
      kept = found->second;
    }
    into.CopyFrom(*kept);
    return true;
  }

  void keep(std::string key, const ProtoMessage& message) {
    std::shared_ptr<ProtoMessage> copy(message.New());
    copy->CopyFrom(message);
    const std::lock_guard lock(mutex_);
    if (messages_.size() < kMost) messages_.emplace(std::move(key), std::move(copy));
  }

 private:
  // A family of clusters has many sizes, each of which is a text of its own.
  static constexpr std::size_t kMost = 1000;

  mutable std::mutex mutex_;  // guards messages_
  std::unordered_map<std::string, std::shared_ptr<const ProtoMessage>> messages_;
};

KeptMessages& kept_messages() {
  static KeptMessages kept;
  return kept;
}

// `how`: what else decides what the text means.
bool read_once(const SourceText& source, std::string_view how, ProtoMessage& message,
               ProblemList& problems, const std::function<bool()>& read) {
  std::string key = message.GetDescriptor()->full_name();
  key.append("\n").append(how).append("\n").append(source.name).append("\n").append(source.text);
  if (kept_messages().find(key, message)) return true;
  const std::size_t before = problems.size();
  if (!read()) return false;
  if (problems.size() == before) kept_messages().keep(std::move(key), message);
  return true;
}

}  // namespace

bool read_catalog_message(const SourceText& source, std::string_view prefix, ProtoMessage& message,
                          ProblemList& problems) {
  return read_once(source, "", message, problems,
                   [&] { return read_message(source, prefix, message, problems); });
}

bool read_catalog_model(const SourceText& source, std::string_view prefix, const std::string& as,
                        file::Model& model, ProblemList& problems) {
  // To ask whether it is a config takes as long as to read one.
  const bool is_config =
      source.extension == ".json" && read_once(source, "config as " + as, model, problems, [&] {
        if (!is_hugging_face(source)) return false;
        read_hugging_face(source, as, model, problems);
        return true;
      });
  if (!is_config) read_catalog_message(source, prefix, model, problems);
  return is_config;
}

}  // namespace stepsim
