#include "model/config_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <vector>

namespace weir::model {
namespace {

// One field of the outermost message.
struct Field {
  std::string_view name;
  size_t begin = 0, value = 0, end = 0;  // offsets in the text; `end` is past the value
};

bool IsName(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Finds the fields of the outermost message. It checks only what it needs: names, strings and brackets.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Result<std::vector<Field>> Fields() {
    std::vector<Field> fields;
    for (SkipBlanks(true); at_ < text_.size(); SkipBlanks(true)) {
      Field field{.begin = at_};
      while (at_ < text_.size() && IsName(text_[at_])) ++at_;
      if (at_ == field.begin) return Fault("wants the name of a field");
      field.name = text_.substr(field.begin, at_ - field.begin);
      SkipBlanks(false);
      if (at_ < text_.size() && text_[at_] == ':') {
        ++at_;
        SkipBlanks(false);
      }
      field.value = at_;
      TRY_STATUS(SkipValue());
      field.end = at_;
      fields.push_back(field);
    }
    return fields;
  }

  // Returns the messages of a list's inside, without their braces.
  Result<std::vector<std::string_view>> Messages() {
    std::vector<std::string_view> messages;
    for (SkipBlanks(true); at_ < text_.size(); SkipBlanks(true)) {
      if (text_[at_] != '{' && text_[at_] != '<') return Fault("wants a message");
      const size_t begin = at_;
      TRY_STATUS(SkipNested());
      messages.push_back(text_.substr(begin + 1, at_ - begin - 2));
    }
    return messages;
  }

 private:
  std::unexpected<Error> Fault(std::string_view what) const {
    const auto line = 1 + std::ranges::count(text_.substr(0, std::min(at_, text_.size())), '\n');
    return Fail(ErrorCode::kInvalidArgument, fmt::format("line {}: {}", line, what));
  }

  void SkipBlanks(bool separators) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (std::isspace(static_cast<unsigned char>(c)) != 0 || (separators && (c == ',' || c == ';')))
        ++at_;
      else
        return;
    }
  }

  Status SkipString() {
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) return Fault("a string has no end");
    ++at_;
    return {};
  }

  Status SkipValue() {
    if (at_ >= text_.size()) return Fault("a field has no value");
    if (std::string_view("{<[").contains(text_[at_])) return SkipNested();
    if (text_[at_] == '"' || text_[at_] == '\'') {
      // Strings side by side are one.
      size_t end = at_;
      while (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
        TRY_STATUS(SkipString());
        end = at_;
        SkipBlanks(false);
      }
      at_ = end;
      return {};
    }
    const size_t begin = at_;
    while (at_ < text_.size() && (IsName(text_[at_]) || std::string_view("+-.").contains(text_[at_]))) ++at_;
    return at_ > begin ? Status() : Fault("a field has no value");
  }

  Status SkipNested() {
    std::string closing;
    do {
      SkipBlanks(true);
      if (at_ >= text_.size()) return Fault(fmt::format("wants a {}", closing.back()));
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        TRY_STATUS(SkipString());
        continue;
      }
      if (c == '{') closing += '}';
      if (c == '<') closing += '>';
      if (c == '[') closing += ']';
      if (c == '}' || c == '>' || c == ']') {
        if (closing.back() != c) return Fault(fmt::format("wants a {} before {}", closing.back(), c));
        closing.pop_back();
      }
      ++at_;
    } while (!closing.empty());
    return {};
  }

  const std::string_view text_;
  size_t at_ = 0;
};

// Returns a field's messages as texts between their braces: one, or those of a list.
Result<std::vector<std::string_view>> MessagesOf(std::string_view value) {
  if (value.empty() || (value[0] != '{' && value[0] != '[' && value[0] != '<'))
    return Fail(ErrorCode::kInvalidArgument, "instance_group is no message");
  const std::string_view inside = value.substr(1, value.size() - 2);
  if (value[0] != '[') return std::vector{inside};
  return Scanner(inside).Messages();
}

Result<std::string> WithCount(std::string_view text, const std::vector<Field>& fields, int count) {
  std::vector<std::string_view> groups;
  for (const Field& field : fields) {
    if (field.name != "instance_group") continue;
    for (const std::string_view one : TRY(MessagesOf(text.substr(field.value, field.end - field.value))))
      groups.push_back(one);
  }
  if (groups.size() > 1)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("instances: config.pbtxt has {} instance groups; leave one", groups.size()));
  if (groups.empty()) return fmt::format("instance_group [ {{ count: {} }} ]\n", count);
  std::string changed(groups[0]);
  const std::vector<Field> inside = TRY(Scanner(groups[0]).Fields());
  const auto found = std::ranges::find(inside, "count", &Field::name);
  if (found != inside.end())
    changed.replace(found->value, found->end - found->value, fmt::format("{}", count));
  else
    changed = fmt::format(" count: {}{}", count, changed);
  return fmt::format("instance_group [ {{{}}} ]\n", changed);
}

}  // namespace

Result<std::string> EditConfig(std::string_view text, const ConfigEdit& edit) {
  const std::vector<Field> fields = TRY_CONTEXT(Scanner(text).Fields(), "config.pbtxt");
  std::string added;
  if (edit.max_batch_size) added += fmt::format("max_batch_size: {}\n", *edit.max_batch_size);
  if (edit.instances) added += TRY(WithCount(text, fields, *edit.instances));
  if (edit.dynamic_batching && edit.dynamic_batching->on)
    added += fmt::format("dynamic_batching {{ max_queue_delay_microseconds: {} }}\n",
                         edit.dynamic_batching->max_queue_delay_us);
  const auto replaced = [&](std::string_view name) {
    return (edit.max_batch_size && name == "max_batch_size") ||
           (edit.instances && name == "instance_group") ||
           (edit.dynamic_batching && name == "dynamic_batching");
  };
  std::string result;
  size_t kept = 0;
  for (const Field& field : fields) {
    if (!replaced(field.name)) continue;
    result += text.substr(kept, field.begin - kept);
    kept = field.end;
  }
  result += text.substr(kept);
  if (!result.empty() && result.back() != '\n') result += '\n';
  return result + added;
}

}  // namespace weir::model
