#include "prepare/sources.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
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
#include "prepare/archive.h"

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
  sources->AddNotTaken();
  return sources;
}

std::unexpected<Error> Sources::NoPictures() const {
  std::vector<std::string> names = options_.paths;
  names.insert(names.end(), options_.lists.begin(), options_.lists.end());
  std::string passed_over;
  if (!not_taken_.empty()) {
    const NotTaken& first = not_taken_.front();
    passed_over = fmt::format(", and {} entries that are not taken (first {}: {})", not_taken_.size(),
                              EscapeForTerminal(first.name), first.reject.detail);
  }
  return Fail(ErrorCode::kIo,
              fmt::format("no pictures in {}{}: name files or folders of pictures, prepared sets, tar "
                          "archives, or lists of them",
                          fmt::join(names, ", "), passed_over));
}

Status Sources::AddListing(dataset::Listing listing) {
  TRY_STATUS(TakeClasses(listing));
  for (dataset::Skipped& skipped : listing.skipped) {
    if (!skipped.reason) continue;
    std::string name = skipped.name.substr(skipped.folder_bytes);
    if (name.empty()) name = ".";  // the source itself
    not_taken_.push_back({std::move(name), {*skipped.reason, std::move(skipped.why)}});
  }
  const auto container = static_cast<int32_t>(listings_.size());
  std::vector<size_t> next_entry(listing.sets.size());  // a set's pictures are listed in its own order
  for (int64_t i = 0; i < std::ssize(listing.inputs); ++i) {
    const dataset::Input& input = listing.inputs[static_cast<size_t>(i)];
    if (input.store >= 0) {
      inputs_.Add({.kind = InputKind::kObject,
                   .name = input.name,
                   .folder_bytes = static_cast<uint32_t>(input.folder_bytes),
                   .container = container,
                   .offset = i});
      continue;
    }
    if (input.set < 0) {
      inputs_.Add({.kind = InputKind::kFile,
                   .is_folder = input.is_folder,
                   .name = input.name,
                   .folder_bytes = static_cast<uint32_t>(input.folder_bytes)});
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
    std::optional<int> label;
    if (input.label && options_.labels.empty()) label = TRY(TicketOfSet(set, *input.label));
    inputs_.Add(
        {.kind = InputKind::kSetInput, .name = name, .label = label, .container = container, .offset = i});
  }
  if (!listing.sets.empty() || !listing.stores.empty())
    listings_.push_back(std::make_unique<dataset::Listing>(std::move(listing)));
  return {};
}

Status Sources::AddTar(const std::string& path) {
  Archive archive{path, path.substr(path.rfind('/') + 1), StateOfFile(path),
                  TRY(dataset::OpenRegularFile(path)).fd};
  const auto container = static_cast<int32_t>(archives_.size());
  ArchiveContents contents = TRY(ReadArchive(path, archive.fd, options_.labels.empty()));
  texts_.BeginSource(path);
  for (const ArchivePicture& picture : contents.pictures) {
    const std::string name = fmt::format("{}/{}", archive.name, picture.name);
    const std::optional<int> label =
        TRY_CONTEXT(texts_.Take(picture.label, picture.label_place), path + ": " + picture.label_place);
    inputs_.Add({.kind = InputKind::kTarMember,
                 .name = name,
                 .label = label,
                 .container = container,
                 .offset = picture.offset,
                 .bytes = picture.bytes});
  }
  for (ArchiveReject& left : contents.not_taken)
    not_taken_.push_back({fmt::format("{}/{}", archive.name, left.name), std::move(left.reject)});
  for (const std::string& name : contents.unused_labels) {
    if (unused_labels_.count++ < static_cast<int64_t>(LabelReport::kExamples))
      unused_labels_.examples.push_back(fmt::format("{}/{}", archive.name, name));
  }
  archives_.push_back(std::move(archive));
  return {};
}

Status Sources::AddList(const std::string& path) {
  dataset::LineReader lines = TRY(dataset::LineReader::Open(path));
  // The first name ends within this many bytes, or is too long.
  const bool zeros = TRY(lines.DetectZeroEnds(kMaxListedName + 1));
  const char* unit = zeros ? "name" : "line";
  texts_.BeginSource(path);
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
    if (options_.labels.empty()) label = TRY_CONTEXT(texts_.Take(name.substr(tab + 1), place), place);
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

void Sources::AddNotTaken() {
  for (size_t i = 0; i < not_taken_.size(); ++i) {
    const std::string_view name = not_taken_[i].name;
    inputs_.Add({.kind = InputKind::kNotTaken,
                 .name = name.substr(0, InputList::kMaxName),
                 .offset = static_cast<int64_t>(i)});
  }
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
    case InputKind::kNotTaken:
      return std::unexpected(not_taken_[static_cast<size_t>(input.offset)].reject);
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
    case InputKind::kNotTaken:
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
  feed.label_rule = label_rule_;
  feed.classes = classes_;
  feed.not_taken = std::ssize(not_taken_);
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
