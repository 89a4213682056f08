#include "dataset/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "dataset/recipe.h"

namespace weir::dataset {

Result<std::vector<std::string>> ParseLabels(std::string_view text) {
  const auto refuse = [](std::string message) {
    return Fail(ErrorCode::kInvalidArgument, std::move(message));
  };
  if (text.size() > kMostLabelBytes)
    return refuse(
        fmt::format("more than {} MiB of labels; give one short name a line", kMostLabelBytes >> 20));
  std::vector<std::string> labels;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (labels.size() == kMostLabels)
      return refuse(fmt::format("more than {} labels; a line is the name of one class", kMostLabels));
    if (line.size() > kMostBytesOfALabel) {
      return refuse(fmt::format("line {}: a label of {} bytes; give it at most {}", labels.size() + 1,
                                line.size(), kMostBytesOfALabel));
    }
    labels.emplace_back(line);
    begin = end + 1;
  }
  return labels;
}

Result<std::vector<std::string>> ReadLabels(const std::string& path) {
  const Bytes text = TRY(ReadFile(path, kMostLabelBytes));
  return TRY_CONTEXT(ParseLabels(text.text()), path);
}

std::string_view ToString(LabelRule rule) {
  switch (rule) {
    case LabelRule::kNone:
      return "none";
    case LabelRule::kNumbers:
      return "numbers";
    case LabelRule::kNames:
      return "names";
    case LabelRule::kGiven:
      return "given";
    case LabelRule::kUnknown:
      break;
  }
  return "";
}

std::optional<LabelRule> LabelRuleOf(std::string_view name) {
  using enum LabelRule;
  for (const LabelRule rule : {kNone, kNumbers, kNames, kGiven}) {
    if (ToString(rule) == name) return rule;
  }
  return std::nullopt;
}

std::optional<int> CanonicalNumber(std::string_view text) {
  if (text.empty() || (text.front() == '0' && text.size() > 1)) return std::nullopt;
  if (text.find_first_not_of("0123456789") != text.npos) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

Result<NumberedLabels> NumberLabels(std::span<const std::string_view> texts) {
  NumberedLabels numbered;
  if (texts.empty()) return numbered;
  const bool numbers =
      std::ranges::all_of(texts, [](std::string_view text) { return CanonicalNumber(text).has_value(); });
  numbered.rule = numbers ? LabelRule::kNumbers : LabelRule::kNames;
  for (const std::string_view text : texts) {
    if (text.contains('\n')) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: a class with a line feed in its name: give it another name",
                              EscapeForTerminal(text)));
    }
    numbered.labels.push_back(numbers ? *CanonicalNumber(text) : static_cast<int>(numbered.labels.size()));
    if (!numbers) numbered.classes.push_back(EscapeBytes(text));
  }
  return numbered;
}

std::optional<std::string_view> ClassFolderOf(std::string_view name) {
  while (name.starts_with("./")) name.remove_prefix(2);
  const size_t slash = name.find('/');
  if (slash == name.npos || slash == 0) return std::nullopt;
  const std::string_view folder = name.substr(0, slash);
  if (folder == ".." || folder == ".") return std::nullopt;
  return folder;
}

}  // namespace weir::dataset
