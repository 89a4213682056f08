// The labels of the inputs of `weir prepare`, whatever they come from.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/json.h"
#include "dataset/set.h"
#include "dataset/source.h"
#include "prepare/sources.h"

namespace weir::prepare {

Status Sources::TakeClasses(const dataset::Listing& listing) {
  for (const auto& set : listing.sets) {
    const dataset::SetFacts& facts = set->facts();
    if (facts.format == dataset::SetFormat::kRaw) {
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("{}: raw records cannot be prepared again; give the pictures they were made of",
                              set->folder()));
    }
    if (set_labels_.first == nullptr) set_labels_.first = set.get();
    const dataset::SetFacts& first = set_labels_.first->facts();
    if (first.classes != facts.classes && options_.labels.empty()) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: names its classes otherwise than the set before it: prepare them one by one",
                      set->folder()));
    }
    set_labels_.alike = set_labels_.alike && first.label_rule == facts.label_rule &&
                        facts.label_rule != dataset::LabelRule::kUnknown;
    if (!options_.labels.empty()) continue;
    texts_.BeginSource(set->folder());
    const bool all = facts.label_rule != dataset::LabelRule::kUnknown;  // also those that no picture has
    for (size_t label = 0; all && label < facts.classes.size(); ++label)
      TRY_STATUS(TicketOfSet(*set, static_cast<int>(label)));
  }
  return {};
}

// A set's labels go by the names of its classes, or by their numbers where they have none.
Result<std::optional<int>> Sources::TicketOfSet(const dataset::PreparedSet& set, int label) {
  const dataset::SetFacts& facts = set.facts();
  const auto at = static_cast<size_t>(label);
  const bool is_name = at < facts.classes.size();
  const std::string text = is_name ? TRY(UnescapeBytes(facts.classes[at])) : std::to_string(label);
  std::optional<int> ticket;
  if (is_name && facts.label_rule != dataset::LabelRule::kUnknown) {
    ticket = texts_.TakeName(text);
  } else {
    ticket = TRY_CONTEXT(texts_.Take(text, "its labels"), set.folder());
  }
  if (!ticket) return ticket;
  set_labels_.labels.resize(std::max(set_labels_.labels.size(), static_cast<size_t>(*ticket) + 1), -1);
  int& known = set_labels_.labels[static_cast<size_t>(*ticket)];
  set_labels_.alike = set_labels_.alike && (known == -1 || known == label);
  known = label;
  return ticket;
}

// Gives each input's ticket its number.
Status Sources::FinishLabels() {
  if (!options_.labels.empty()) TRY_STATUS(ReplaceLabels());
  TRY_STATUS(texts_.Check());
  LabelTexts::Numbered numbered = TRY(texts_.Number());
  const std::vector<int>& of_sets = set_labels_.labels;
  if (options_.labels.empty() && set_labels_.first != nullptr && set_labels_.alike &&
      of_sets.size() == texts_.size() && std::ranges::count(of_sets, -1) == 0) {
    const dataset::SetFacts& facts = set_labels_.first->facts();
    numbered = {facts.label_rule, of_sets, facts.classes};
  }
  label_rule_ = numbered.rule;
  classes_ = std::move(numbered.classes);
  for (int64_t i = 0; i < inputs_.size(); ++i) {
    const std::optional<int> ticket = inputs_[i].label;
    if (ticket) inputs_.SetLabel(i, numbered.labels[static_cast<size_t>(*ticket)]);
  }
  return {};
}

// The sources' own labels no longer count.
Status Sources::ReplaceLabels() {
  texts_ = {};
  for (int64_t i = 0; i < inputs_.size(); ++i) inputs_.SetLabel(i, std::nullopt);
  if (options_.labels != "folders") return TakeLabelsFrom(options_.labels);
  TakeFolders();
  if (texts_.size() == 0) {
    return Fail(ErrorCode::kInvalidArgument,
                "--labels folders: no picture lies in a folder below its source, or has a relative name with "
                "a folder in a list");
  }
  labels_of_ = options_.labels;
  return {};
}

Status Sources::TakeLabelsFrom(const std::string& path) {
  const NamedPictures pictures{.count = inputs_.size(),
                               .name = [this](int64_t i) { return inputs_[i].relative_name(); },
                               .are_one =
                                   [this](int64_t a, int64_t b) {
                                     const ListedInput x = inputs_[a], y = inputs_[b];
                                     return x.kind == y.kind && x.container == y.container &&
                                            x.name == y.name;
                                   }};
  const std::unique_ptr<LabelFile> file = TRY(LabelFile::Read(path, pictures, texts_));
  const std::vector<std::optional<int>> tickets = TRY(file->Match(pictures));
  for (size_t i = 0; i < tickets.size(); ++i) inputs_.SetLabel(static_cast<int64_t>(i), tickets[i]);
  unused_labels_ = file->FindUnused(LabelReport::kExamples);
  if (unused_labels_.count == file->size()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--labels {}: it names none of the pictures; its names are those of "
                            "the manifest, or their last parts, in its first column or the one that its "
                            "header calls \"filename\"",
                            options_.labels));
  }
  labels_of_ = "XXH3-128 " + file->hash();
  return {};
}

// The folder that names an input's class.
std::optional<std::string_view> Sources::FolderOf(const ListedInput& input) const {
  std::string_view name = input.relative_name();
  if (dataset::IsObjectUrl(name)) return std::nullopt;
  if (input.kind == InputKind::kTarMember)
    name.remove_prefix(archives_[static_cast<size_t>(input.container)].name.size() + 1);
  auto folder = dataset::ClassFolderOf(name);
  // Tells what a set was made of an archive's pictures, each has the archive's name before its own.
  if (folder && input.kind == InputKind::kSetInput && folder->ends_with(".tar"))
    folder = dataset::ClassFolderOf(name.substr(folder->size() + 1));
  return folder;
}

// A folder without a file named like a picture is no class, as for a feed.
void Sources::TakeFolders() {
  std::set<std::string, std::less<>> classes;
  for (int64_t i = 0; i < inputs_.size(); ++i) {
    const ListedInput input = inputs_[i];
    const auto folder = FolderOf(input);
    if (folder && !input.is_folder && dataset::IsNamedLikeAPicture(input.name)) classes.emplace(*folder);
  }
  for (int64_t i = 0; i < inputs_.size(); ++i) {
    const ListedInput input = inputs_[i];
    const auto folder = FolderOf(input);
    if (folder && classes.contains(*folder)) inputs_.SetLabel(i, texts_.TakeName(*folder));
  }
}

}  // namespace weir::prepare
