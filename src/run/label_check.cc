#include "run/label_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/json.h"
#include "dataset/set.h"

namespace weir::run {
namespace {

// Lower case, with single spaces between the words.
std::string Words(std::string_view name) {
  std::string words;
  for (const char c : name) {
    const bool is_space = c == ' ' || c == '_' || c == '\t' || c == '\r';
    if (is_space && (words.empty() || words.back() == ' ')) continue;
    const bool is_upper = c >= 'A' && c <= 'Z';
    words += is_space ? ' ' : is_upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  while (words.ends_with(' ')) words.pop_back();
  return words;
}

std::set<std::string> Synonyms(std::string_view name) {
  std::set<std::string> synonyms;
  while (true) {
    const size_t comma = name.find(',');
    if (std::string words = Words(name.substr(0, comma)); !words.empty()) synonyms.insert(std::move(words));
    if (comma == std::string_view::npos) return synonyms;
    name.remove_prefix(comma + 1);
  }
}

bool BeginsWithWord(const std::string& text, const std::string& word) {
  return text.size() > word.size() && text.starts_with(word) && text[word.size()] == ' ';
}

// The name of the class with that label; empty where there is none.
std::string_view NameOf(const std::vector<std::string>& names, int label) {
  return label < std::ssize(names) ? std::string_view(names[static_cast<size_t>(label)]) : std::string_view();
}

}  // namespace

bool IsSameClass(std::string_view a, std::string_view b) {
  const std::string first = Words(a), second = Words(b);
  if (first == second || BeginsWithWord(first, second) || BeginsWithWord(second, first)) return true;
  const std::set<std::string> others = Synonyms(b);
  return std::ranges::any_of(Synonyms(a), [&](const std::string& name) { return others.contains(name); });
}

Status CheckLabels(const dataset::Listing& listing, const Target& target) {
  std::set<std::pair<int, int>> seen;  // set and label
  for (const dataset::Input& input : listing.inputs) {
    if (!input.label || !seen.emplace(input.set, *input.label).second) continue;
    const int label = *input.label;
    if (label < 0 || (target.classes && label >= *target.classes)) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{} has the label {}, and the model has {} classes: the pictures are labelled for "
                      "another model",
                      EscapeBytes(input.name), label, target.classes.value_or(0)));
    }
    if (input.set < 0) continue;
    const dataset::PreparedSet& set = *listing.sets[static_cast<size_t>(input.set)];
    const std::string_view theirs = NameOf(set.facts().classes, label), ours = NameOf(target.labels, label);
    if (theirs.empty() || ours.empty() || IsSameClass(theirs, EscapeBytes(ours))) continue;
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("class {} is \"{}\" in the set {}, and \"{}\" by the model's labels: prepare the "
                            "pictures with labels of this model (--labels)",
                            label, theirs, EscapeBytes(set.folder()), EscapeBytes(ours)));
  }
  return {};
}

}  // namespace weir::run
