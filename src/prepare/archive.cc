#include "prepare/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/json.h"
#include "dataset/file_at.h"
#include "dataset/source.h"
#include "dataset/tar.h"
#include "prepare/labels.h"

namespace weir::prepare {
namespace {

using dataset::TarKind;
using dataset::TarMember;
using image::RejectReason;

constexpr int64_t kMaxLabelBytes = 4096;

// The path that unpacking gives: without empty parts and ".", each ".." with the part before it.
std::string Plain(std::string_view name) {
  std::vector<std::string_view> parts;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('/'));
    name.remove_prefix(std::min(part.size() + 1, name.size()));
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
  }
  return fmt::format("{}", fmt::join(parts, "/"));
}

std::string_view FolderOf(std::string_view name) { return name.substr(0, name.rfind('/') + 1); }

// The name less its last ending.
std::string_view StemOf(std::string_view name) {
  const size_t begin = name.rfind('/') + 1, dot = name.rfind('.');
  return dot == name.npos || dot < begin ? name : name.substr(0, dot);
}

// The key of a sample as WebDataset defines it: the name up to the first dot of its last part.
std::string_view KeyOf(std::string_view name) {
  const size_t part = name.rfind('/') + 1;
  return name.substr(0, std::min(name.find('.', part), name.size()));
}

bool HasEnding(std::string_view name, std::string_view ending) {
  const std::string_view stem = StemOf(name);
  if (stem.size() == name.size()) return false;
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::ranges::equal(name.substr(stem.size() + 1), ending, same);
}

// Gives each link the place of what it leads to.
class Links {
 public:
  explicit Links(const std::vector<TarMember>& members) : members_(members) {
    for (size_t i = 0; i < members.size(); ++i) by_name_.try_emplace(members[i].name, i);
  }

  // The file behind a link; null where the archive does not hold it.
  const TarMember* Follow(const TarMember& link) const {
    constexpr int kMost = 40;  // as Linux has it: links may go in circles
    const TarMember* at = &link;
    for (int i = 0; i < kMost && at->kind != TarKind::kFile; ++i) {
      const bool hard = at->kind == TarKind::kHardLink;
      if (!hard && (at->kind != TarKind::kSoftLink || at->link.starts_with('/'))) return nullptr;
      const auto found = by_name_.find(Plain(hard ? at->link : std::string(FolderOf(at->name)) + at->link));
      if (found == by_name_.end()) return nullptr;
      at = &members_[found->second];
    }
    return at->kind == TarKind::kFile ? at : nullptr;
  }

 private:
  const std::vector<TarMember>& members_;
  std::unordered_map<std::string, size_t> by_name_;
};

class ArchiveReader {
 public:
  ArchiveReader(const std::string& path, const UniqueFd& fd, bool with_labels)
      : path_(path), fd_(fd), with_labels_(with_labels) {}

  Result<ArchiveContents> Read() {
    TRY_STATUS(dataset::ScanTar(path_, [&](TarMember member) -> Status {
      has_links_ = has_links_ || member.kind == TarKind::kHardLink || member.kind == TarKind::kSoftLink;
      member.name = Plain(member.name);
      members_.push_back(std::move(member));
      return {};
    }));
    if (has_links_) FollowLinks();
    for (const TarMember& member : members_) TRY_STATUS(Meet(member));
    if (with_labels_) TRY_STATUS(GiveLabels());
    return std::move(contents_);
  }

 private:
  void FollowLinks() {
    const Links links(members_);
    std::vector<TarMember> followed = members_;
    for (TarMember& member : followed) {
      if (member.kind != TarKind::kHardLink && member.kind != TarKind::kSoftLink) continue;
      if (const TarMember* file = links.Follow(member)) {
        member = {.name = std::move(member.name), .offset = file->offset, .size = file->size};
      }
    }
    members_ = std::move(followed);
  }

  void Leave(const std::string& name, RejectReason reason, std::string why) {
    contents_.not_taken.push_back({name, {reason, std::move(why)}});
  }

  Status Meet(const TarMember& member) {
    const bool is_label = HasEnding(member.name, "cls"), is_json = HasEnding(member.name, "json");
    const bool is_picture = dataset::IsNamedLikeAPicture(member.name);
    if (member.kind == TarKind::kRest) {
      Leave(fmt::format("(byte {})", member.offset), RejectReason::kUnsupported,
            fmt::format("{} bytes behind the archive's end, which are no archive", member.size));
    } else if (member.name.empty() || dataset::IsHiddenName(member.name)) {
      Leave(member.name, RejectReason::kHidden, "hidden");
    } else if (member.kind == TarKind::kOther) {
      Leave(member.name, RejectReason::kNotAFile, "a device or pipe, or a member of an unknown type");
    } else if (member.kind != TarKind::kFile) {
      Leave(member.name, RejectReason::kLink,
            fmt::format("a link to {}, which the archive does not hold", EscapeBytes(member.link)));
    } else if (is_picture || is_label) {
      TRY_STATUS(CheckNamedOnce(member));
      if (is_label) labels_.push_back(member);
      if (is_picture) {
        contents_.pictures.push_back({.name = member.name,
                                      .offset = member.offset,
                                      .bytes = member.size,
                                      .label = {},
                                      .label_place = {}});
      }
    } else if (is_json) {
      json_.push_back(member);
    } else {
      dataset::NotTaken why = dataset::WhyNotTaken(member.name, "not a picture by name");
      Leave(member.name, why.reason, std::move(why.why));
    }
    return {};
  }

  // One sample would have two pictures, or two labels.
  Status CheckNamedOnce(const TarMember& member) {
    const auto [first, is_new] = offsets_.emplace(member.name, member.offset);
    if (is_new) return {};
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: several members are named {}, the first two with their contents at bytes {} "
                            "and {}: give each sample a name of its own",
                            path_, EscapeBytes(member.name), first->second, member.offset));
  }

  using ByText = std::unordered_map<std::string_view, std::vector<size_t>>;  // numbers of labels

  std::unexpected<Error> Refuse(const ArchivePicture& picture, size_t a, size_t b) const {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: {} may have the label of {} or of {}: give it one .cls of its own, or give "
                            "--labels",
                            path_, EscapeBytes(picture.name), EscapeBytes(labels_[a].name),
                            EscapeBytes(labels_[b].name)));
  }

  // The label that is meant for a picture.
  Result<std::optional<size_t>> LabelOf(const ArchivePicture& picture, const ByText& by_stem,
                                        const ByText& by_key) const {
    if (const auto own = by_stem.find(StemOf(picture.name)); own != by_stem.end()) {
      if (own->second.size() > 1) return Refuse(picture, own->second[0], own->second[1]);
      return own->second.front();
    }
    const auto of_key = by_key.find(KeyOf(picture.name));
    if (of_key == by_key.end()) return std::nullopt;
    if (of_key->second.size() > 1) return Refuse(picture, of_key->second[0], of_key->second[1]);
    const size_t label = of_key->second.front();
    if (!stems_.contains(StemOf(labels_[label].name))) return label;
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: {} has no label of its own, and {} of the same key belongs to another "
                            "picture: give it a .cls of its own, or give --labels",
                            path_, EscapeBytes(picture.name), EscapeBytes(labels_[label].name)));
  }

  Status GiveLabels() {
    ByText by_stem, by_key;
    for (size_t i = 0; i < labels_.size(); ++i) {
      by_stem[StemOf(labels_[i].name)].push_back(i);
      by_key[KeyOf(labels_[i].name)].push_back(i);
    }
    for (const ArchivePicture& picture : contents_.pictures) stems_.insert(StemOf(picture.name));
    std::vector<bool> used(labels_.size());
    std::unordered_set<std::string_view> unlabelled;  // keys
    for (ArchivePicture& picture : contents_.pictures) {
      const std::optional<size_t> label = TRY(LabelOf(picture, by_stem, by_key));
      if (!label) unlabelled.insert(KeyOf(picture.name));
      if (!label) continue;
      used[*label] = true;
      picture.label = TRY(ReadLabel(labels_[*label]));
      picture.label_place = labels_[*label].name;
    }
    for (size_t i = 0; i < labels_.size(); ++i) {
      if (used[i]) continue;
      contents_.unused_labels.push_back(labels_[i].name);
      Leave(labels_[i].name, RejectReason::kUnusedLabel, "no picture of the archive has this name or key");
    }
    // Beside a labelled picture they are further facts about it.
    for (const TarMember& json : json_) {
      if (unlabelled.contains(KeyOf(json.name)) && TRY(TellsOfALabel(json)))
        Leave(json.name, RejectReason::kUnusedLabel,
              "labels are not read from JSON: give a .cls, or --labels");
    }
    return {};
  }

  Result<bool> TellsOfALabel(const TarMember& json) const {
    constexpr int64_t kMost = 64 << 10;
    std::string text(static_cast<size_t>(std::min(json.size, kMost)), '\0');
    TRY_STATUS(dataset::ReadAt(fd_, path_, std::as_writable_bytes(std::span(text)), json.offset));
    const std::string_view keys[] = {"label\"",       "class\"",    "cls\"",
                                     "class_index\"", "category\"", "target\""};
    return std::ranges::any_of(keys, [&](std::string_view key) { return text.contains(key); });
  }

  Result<std::string> ReadLabel(const TarMember& member) const {
    const std::string place = fmt::format("{}: {}", path_, EscapeBytes(member.name));
    if (member.size > kMaxLabelBytes)
      return Fail(ErrorCode::kCorrupt, fmt::format("{}: a label of {} bytes", place, member.size));
    std::string text(static_cast<size_t>(member.size), '\0');
    const auto into = std::as_writable_bytes(std::span(text));
    if (TRY(dataset::ReadAt(fd_, path_, into, member.offset)) != into.size())
      return Fail(ErrorCode::kIo, fmt::format("{}: has become shorter while it was read", path_));
    const std::string_view label = Trimmed(WithoutMark(text));
    if (const Status good = CheckLabel(label); !good) return Context(place, good.error());
    return std::string(label);
  }

  const std::string& path_;
  const UniqueFd& fd_;
  const bool with_labels_;
  bool has_links_ = false;
  std::vector<TarMember> members_, labels_, json_;
  std::unordered_map<std::string, int64_t> offsets_;  // of pictures and labels, by name
  std::unordered_set<std::string_view> stems_;        // of pictures
  ArchiveContents contents_;
};

}  // namespace

Result<ArchiveContents> ReadArchive(const std::string& path, const UniqueFd& fd, bool with_labels) {
  return ArchiveReader(path, fd, with_labels).Read();
}

}  // namespace weir::prepare
