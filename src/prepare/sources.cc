#include "prepare/sources.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/secrets.h"
#include "dataset/file_at.h"
#include "dataset/hash.h"
#include "dataset/line_reader.h"
#include "dataset/set.h"
#include "dataset/tar.h"
#include "image/decode.h"

namespace weir::prepare {
namespace {

constexpr size_t kMaxListedName = 64 << 10;  // bytes; a URL's, no path is as long
static_assert(kMaxListedName <= InputList::kMaxName);

using dataset::IsObjectUrl;

// Also what would be one if it were not compressed, for a better word than "not a picture".
bool IsTarArgument(const std::string& path) {
  for (const std::string_view ending : {".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst"}) {
    if (path.ends_with(ending)) return true;
  }
  return dataset::IsTar(path);
}

// Returns the key of a sample as WebDataset defines it: the name up to the first dot of its last part.
std::string_view KeyOf(std::string_view name) {
  const size_t part = name.rfind('/') + 1;
  return name.substr(0, std::min(name.find('.', part), name.size()));
}

// Trims a small text, such as a label's.
std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  return text;
}

Result<std::string> ReadSmall(const UniqueFd& fd, const std::string& path, int64_t offset, int64_t size) {
  if (size > 4096) return Fail(ErrorCode::kCorrupt, fmt::format("{}: a label of {} bytes", path, size));
  std::string text(static_cast<size_t>(size), '\0');
  const auto into = std::as_writable_bytes(std::span(text));
  if (TRY(dataset::ReadAt(fd, path, into, offset)) == into.size()) return text;
  return Fail(ErrorCode::kIo, fmt::format("{}: has become shorter while it was read", path));
}

// The first folder of a relative name; nullopt for a URL, an absolute path, and a name without a folder.
std::optional<std::string_view> FirstFolderOf(std::string_view name) {
  while (name.starts_with("./")) name.remove_prefix(2);
  const size_t slash = name.find('/');
  if (slash == name.npos || slash == 0 || IsObjectUrl(name)) return std::nullopt;
  return name.substr(0, slash);
}

dataset::StreamHash& Add(dataset::StreamHash& hash, std::string_view text) {
  hash.Add(std::as_bytes(std::span(text)));
  hash.Add(std::as_bytes(std::span("", 1)));
  return hash;
}

// Size and time of the last change of a file.
std::string StateOfFile(const std::string& path) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return fmt::format("errno {}", errno);
  return fmt::format("{} bytes {}.{:09}", facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
}

bool IsFolder(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

struct FolderContents {
  int64_t inputs = 0;
  dataset::StreamHash hash;
};

void AddContents(const dataset::Listing& listing, FolderContents& contents) {
  contents.inputs += std::ssize(listing.inputs);
  for (const dataset::Input& input : listing.inputs) Add(contents.hash, input.name);
}

}  // namespace

Result<std::unique_ptr<Sources>> Sources::Open(SourceOptions options) {
  auto reader = std::make_unique<dataset::ObjectReader>(
      dataset::ObjectReader::Options{.retries = options.fetch.retries, .timeout = options.fetch.timeout});
  for (std::string& path : options.paths) {
    if (IsObjectUrl(path) && IsTarArgument(path)) path = TRY(reader->CopyOf(path, options.fetch.stop));
  }
  for (std::string& path : options.lists) path = TRY(reader->CopyOf(path, options.fetch.stop));
  if (IsObjectUrl(options.labels)) options.labels = TRY(reader->CopyOf(options.labels, options.fetch.stop));
  std::unique_ptr<Sources> sources(new Sources(std::move(options), std::move(reader)));
  const SourceOptions& wanted = sources->options_;
  if (std::ranges::count(wanted.lists, "-") + (wanted.labels == "-" ? 1 : 0) > 1) {
    return Fail(ErrorCode::kInvalidArgument,
                "standard input can be read only once: give the list or the labels as a file");
  }
  const auto is_archive = [](const std::string& path) { return !IsFolder(path) && IsTarArgument(path); };
  sources->labels_are_tickets_ =
      !wanted.labels.empty() || !wanted.lists.empty() || std::ranges::any_of(wanted.paths, is_archive);
  FolderContents folders;
  for (const std::string& path : wanted.paths) {
    if (is_archive(path)) {
      TRY_STATUS(sources->AddTar(path));
      continue;
    }
    dataset::Listing listing = TRY(dataset::ListInputs({path}));
    if (IsFolder(path)) AddContents(listing, folders);
    TRY_STATUS(sources->AddListing(std::move(listing)));
  }
  sources->folders_inputs_ = folders.inputs;
  sources->folders_hash_ = folders.hash.Digest();
  for (const std::string& path : wanted.lists) TRY_STATUS(sources->AddList(path));
  if (sources->inputs_.size() == 0) return sources->NoPictures();
  TRY_STATUS(sources->FinishLabels());
  return sources;
}

std::unexpected<Error> Sources::NoPictures() const {
  std::vector<std::string> names = options_.paths;
  names.insert(names.end(), options_.lists.begin(), options_.lists.end());
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("no pictures in {} ({} passed over): name files or folders of pictures, prepared "
                          "sets, tar archives, or lists of them",
                          fmt::join(names, ", "), skipped_));
}

Status Sources::TakeClasses(const dataset::Listing& listing) {
  for (const auto& set : listing.sets) {
    if (set->facts().format == dataset::SetFormat::kRaw) {
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("{}: raw records cannot be prepared again; give the pictures they were made of",
                              set->folder()));
    }
    if (std::exchange(has_classes_, true) && classes_ != set->facts().classes) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: names its classes otherwise than the set before it: prepare them one by one",
                      set->folder()));
    }
    classes_ = set->facts().classes;
  }
  return {};
}

// A set's own labels are numbers; among tickets they go by their text.
Status Sources::AddListing(dataset::Listing listing) {
  TRY_STATUS(TakeClasses(listing));
  skipped_ += std::ssize(listing.skipped);
  const auto container = static_cast<int32_t>(listings_.size());
  std::vector<size_t> next_entry(listing.sets.size());  // a set's pictures are listed in its own order
  for (int64_t i = 0; i < std::ssize(listing.inputs); ++i) {
    const dataset::Input& input = listing.inputs[static_cast<size_t>(i)];
    std::optional<int> label = input.label;
    if (label && labels_are_tickets_) label = texts_.TicketOf(std::to_string(*label));
    if (input.store >= 0) {
      inputs_.Add({.kind = InputKind::kObject,
                   .name = input.name,
                   .folder_bytes = static_cast<uint32_t>(input.folder_bytes),
                   .label = label,
                   .container = container,
                   .offset = i});
      continue;
    }
    if (input.set < 0) {
      inputs_.Add({.kind = InputKind::kFile,
                   .name = input.name,
                   .folder_bytes = static_cast<uint32_t>(input.folder_bytes),
                   .label = label});
      continue;
    }
    // The name that the picture had before the set was made.
    const auto set_index = static_cast<size_t>(input.set);
    const dataset::PreparedSet& set = *listing.sets[set_index];
    const std::string place =
        fmt::format("{}/manifest.jsonl: line {}", set.folder(), next_entry[set_index] + 1);
    const dataset::SetEntry& entry = set.entries()[next_entry[set_index]++];
    const std::string name = TRY_CONTEXT(UnescapeBytes(entry.source), place);
    if (name.empty() || name.size() > InputList::kMaxName)
      return Fail(ErrorCode::kCorrupt, fmt::format("{}: a source of {} bytes", place, name.size()));
    inputs_.Add(
        {.kind = InputKind::kSetInput, .name = name, .label = label, .container = container, .offset = i});
  }
  if (!listing.sets.empty() || !listing.stores.empty())
    listings_.push_back(std::make_unique<dataset::Listing>(std::move(listing)));
  return {};
}

namespace {

// Refuses a name that two members have: one sample would have two pictures, or two labels. Reads the archive
// anew.
Status CheckNamedOnce(const std::string& path, const std::string& name) {
  std::vector<int64_t> places;
  TRY_STATUS(dataset::ScanTar(path, [&](const dataset::TarMember& member) -> Status {
    if (member.name == name) places.push_back(member.offset);
    return {};
  }));
  if (places.size() < 2) return {};
  return Fail(
      ErrorCode::kCorrupt,
      fmt::format("{} members are named {}, the first two with their contents at bytes {} and {}: give "
                  "each sample a name of its own",
                  places.size(), EscapeBytes(name), places[0], places[1]));
}

}  // namespace

Status Sources::AddTar(const std::string& path) {
  Archive archive{path, path.substr(path.rfind('/') + 1), StateOfFile(path),
                  TRY(dataset::OpenRegularFile(path)).fd};
  const auto container = static_cast<int32_t>(archives_.size());
  // The pictures of one key whose label has not been met yet: WebDataset keeps a key's members together.
  std::string key;
  std::optional<int> label;
  int64_t first = inputs_.size();
  const auto begin_key = [&](std::string_view next) {
    if (next == key) return;
    key = next;
    label.reset();
    first = inputs_.size();
  };
  std::unordered_set<size_t> seen;  // hashes of names
  TRY_STATUS(dataset::ScanTar(path, [&](const dataset::TarMember& member) -> Status {
    const bool is_label = member.name.ends_with(".cls");
    if ((is_label || dataset::IsNamedLikeAPicture(member.name)) &&
        !seen.insert(std::hash<std::string>()(member.name)).second)
      TRY_STATUS(CheckNamedOnce(path, member.name));
    begin_key(KeyOf(member.name));
    if (is_label) {
      const std::string text = TRY(ReadSmall(archive.fd, path, member.offset, member.size));
      if (const Status good = CheckLabel(Trimmed(text)); !good && options_.labels.empty())
        return Context(fmt::format("{}: {}", path, member.name), good.error());
      label = texts_.TicketOf(Trimmed(text));
      for (int64_t i = first; i < inputs_.size(); ++i) inputs_.SetLabel(i, label);
    } else if (dataset::IsNamedLikeAPicture(member.name)) {
      const std::string name = fmt::format("{}/{}", archive.name, member.name);
      inputs_.Add({.kind = InputKind::kTarMember,
                   .name = name,
                   .label = label,
                   .container = container,
                   .offset = member.offset,
                   .bytes = member.size});
    } else {
      skipped_ += member.name.ends_with(".json") ? 0 : 1;
    }
    return {};
  }));
  archives_.push_back(std::move(archive));
  return {};
}

Status Sources::AddList(const std::string& path) {
  dataset::LineReader lines = TRY(dataset::LineReader::Open(path));
  // The first name ends within this many bytes, or is too long.
  const bool zeros = TRY(lines.DetectZeroEnds(kMaxListedName + 1));
  const char* unit = zeros ? "name" : "line";
  while (const auto next = TRY(lines.Next())) {
    const std::string place = fmt::format("{}: {} {}", path, unit, lines.line());
    std::string_view name = *next;
    if (zeros) {
      if (name.empty())
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("{} is empty: two zero bytes follow one another", place));
    } else {
      if (lines.line() == 1) name = WithoutMark(name);
      if (name.ends_with('\r')) name.remove_suffix(1);
      if (name.contains('\0')) {
        return Fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{}: holds a zero byte: end all names with a newline, or all with a zero byte "
                        "(find -print0)",
                        place));
      }
    }
    TRY_STATUS(AddListed(name, place, !zeros));
  }
  return {};
}

// `place` is for messages.
Status Sources::AddListed(std::string_view name, const std::string& place, bool has_label) {
  std::optional<int> label;
  if (const size_t tab = name.find('\t'); has_label && tab != name.npos) {
    const std::string_view text = Trimmed(name.substr(tab + 1));
    if (const Status good = CheckLabel(text); !good && options_.labels.empty())
      return Context(place, good.error());
    label = texts_.TicketOf(text);
    name = name.substr(0, tab);
  }
  if (name.empty()) return {};
  if (name.size() > kMaxListedName) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: a name of {} bytes, and {} are the most: one name a line", place,
                            name.size(), kMaxListedName));
  }
  inputs_.Add(
      {.kind = IsObjectUrl(name) ? InputKind::kUrl : InputKind::kListedFile, .name = name, .label = label});
  return {};
}

Status Sources::FinishLabels() {
  if (!options_.labels.empty()) TRY_STATUS(ReplaceLabels());
  if (!labels_are_tickets_) return {};
  // A prepared set's classes stay those of its numbers, when nothing else was said.
  LabelTexts::Numbered numbered = texts_.Number();
  if (!numbered.classes.empty()) classes_ = std::move(numbered.classes);
  for (int64_t i = 0; i < inputs_.size(); ++i) {
    const std::optional<int> ticket = inputs_[i].label;
    if (ticket) inputs_.SetLabel(i, numbered.labels[static_cast<size_t>(*ticket)]);
  }
  return {};
}

// The sources' own labels no longer count.
Status Sources::ReplaceLabels() {
  texts_ = {};
  classes_.clear();
  std::unique_ptr<LabelFile> file;
  if (options_.labels != "folders") file = TRY(LabelFile::Read(options_.labels, texts_));
  bool any = false;
  for (int64_t i = 0; i < inputs_.size(); ++i) {
    const std::string_view name = inputs_[i].relative_name();
    std::optional<int> ticket;
    if (file) {
      ticket = file->TicketOf(name);
    } else if (const auto folder = FirstFolderOf(name)) {
      ticket = texts_.TicketOf(*folder);
    }
    any = any || ticket;
    inputs_.SetLabel(i, ticket);
  }
  if (!any) {
    return Fail(ErrorCode::kInvalidArgument,
                !file
                    ? std::string("--labels folders: no picture lies in a folder below its source, or has a "
                                  "relative name with a folder in a list")
                    : fmt::format("--labels {}: it names none of the pictures; its names are those of "
                                  "the manifest, or their last parts",
                                  options_.labels));
  }
  labels_of_ = file ? "XXH3-128 " + file->hash() : options_.labels;
  if (file) unused_labels_ = file->FindUnused(LabelReport::kExamples);
  return {};
}

image::Accepted<Bytes> Sources::LoadMember(const ListedInput& input) const {
  const Archive& archive = archives_[static_cast<size_t>(input.container)];
  if (static_cast<uint64_t>(input.bytes) > options_.max_file_bytes) {
    return std::unexpected(image::Reject{
        image::RejectReason::kTooManyBytes,
        fmt::format("{} bytes are more than the limit of {}", input.bytes, options_.max_file_bytes)});
  }
  Bytes bytes = Bytes::AllocateUninitialized(static_cast<size_t>(input.bytes));
  const std::span<std::byte> into(bytes.mutable_data(), bytes.size());
  const Result<size_t> got = dataset::ReadAt(archive.fd, archive.path, into, input.offset);
  if (!got) return std::unexpected(image::RejectOf(got.error()));
  if (*got == bytes.size()) return bytes;
  return std::unexpected(
      image::Reject{image::RejectReason::kVanished, fmt::format("{} has become shorter", archive.path)});
}

image::Accepted<Bytes> Sources::Load(const ListedInput& input) const {
  switch (input.kind) {
    case InputKind::kTarMember:
      return LoadMember(input);
    case InputKind::kUrl:
      if (input.name.starts_with("s3://")) {
        return reader_->Read(std::string(input.name), options_.max_file_bytes, options_.fetch.stop);
      }
      return dataset::Fetch(std::string(input.name), options_.max_file_bytes, options_.fetch);
    case InputKind::kObject:
    case InputKind::kSetInput: {
      const dataset::Listing& listing = *listings_[static_cast<size_t>(input.container)];
      return dataset::LoadInput(listing, listing.inputs[static_cast<size_t>(input.offset)],
                                options_.max_file_bytes);
    }
    case InputKind::kFile:
    case InputKind::kListedFile:
      break;
  }
  dataset::Input file;
  file.name = input.name;
  auto loaded = dataset::LoadInput({}, file, options_.max_file_bytes);
  if (!loaded && input.kind == InputKind::kListedFile &&
      loaded.error().reason == image::RejectReason::kVanished) {
    loaded.error().reason = image::RejectReason::kMissing;
  }
  return loaded;
}

// A signature or password in a URL stays out of manifests, rejects and shards; it is no part of what the
// picture is.
std::string Sources::SourceOf(const ListedInput& input) {
  return input.kind == InputKind::kUrl ? WithoutSecrets(input.name) : std::string(input.relative_name());
}

FedPicture Sources::Get(int64_t index) const {
  const ListedInput input = inputs_[index];
  image::Accepted<Bytes> encoded = Load(input);
  if (!encoded) encoded.error().detail = WithoutSecrets(encoded.error().detail);
  return {.source = SourceOf(input),
          .label = input.label,
          .encoded = std::move(encoded),
          .from_network = input.kind == InputKind::kUrl || input.kind == InputKind::kObject};
}

std::string Sources::StateOf(int64_t index) const {
  const ListedInput input = inputs_[index];
  switch (input.kind) {
    case InputKind::kFile:
    case InputKind::kListedFile:
      return StateOfFile(std::string(input.name));
    case InputKind::kTarMember:
      return archives_[static_cast<size_t>(input.container)].state;
    case InputKind::kSetInput: {
      const dataset::Listing& listing = *listings_[static_cast<size_t>(input.container)];
      const int set = listing.inputs[static_cast<size_t>(input.offset)].set;
      return listing.sets[static_cast<size_t>(set)]->facts().manifest_hash;
    }
    case InputKind::kObject: {
      const dataset::Listing& listing = *listings_[static_cast<size_t>(input.container)];
      return dataset::StateOfObject(listing, listing.inputs[static_cast<size_t>(input.offset)]);
    }
    case InputKind::kUrl:
      break;
  }
  return "";
}

Status Sources::CheckUnchanged() const {
  FolderContents now;
  for (const std::string& path : options_.paths) {
    if (!IsFolder(path)) continue;
    const Result<dataset::Listing> listing = dataset::ListInputs({path});
    if (!listing) {
      return Fail(ErrorCode::kIo,
                  fmt::format("the sources changed while they were read: {}", listing.error().message));
    }
    AddContents(*listing, now);
  }
  if (now.hash.Digest() == folders_hash_) return {};
  return Fail(ErrorCode::kIo,
              fmt::format("the sources changed while they were read: their folders held {} pictures, and now "
                          "hold {}",
                          folders_inputs_, now.inputs));
}

Feed Sources::MakeFeed() const {
  Feed feed;
  feed.count = inputs_.size();
  feed.classes = classes_;
  feed.skipped = skipped_;
  feed.arguments.labels = labels_of_;
  feed.unused_labels = unused_labels_.count;
  feed.unused_label_examples = unused_labels_.examples;
  feed.get = [this](int64_t index) { return Get(index); };
  feed.name = [this](int64_t index) { return SourceOf(inputs_[index]); };
  feed.label = [this](int64_t index) { return inputs_[index].label; };
  feed.describe = [this](int64_t index) {
    const ListedInput input = inputs_[index];
    // With its class's name: a set holds that too, and is another where it is another.
    const auto label = static_cast<size_t>(input.label.value_or(-1));
    const std::string_view name = label < classes_.size() ? classes_[label] : std::string_view();
    return fmt::format("{}{}{}{}{}\n", SourceOf(input), '\0', input.label.value_or(-1), '\0', name);
  };
  feed.state = [this](int64_t index) { return StateOf(index); };
  feed.check_unchanged = [this] { return CheckUnchanged(); };
  return feed;
}

}  // namespace weir::prepare
