#include "feed/local_source.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "base/count.h"
#include "base/file.h"
#include "base/text.h"
#include "dataset/file_at.h"
#include "dataset/hash.h"
#include "dataset/labels.h"
#include "dataset/set_text.h"
#include "dataset/source.h"
#include "feed/uring_reads.h"

namespace weir::feed {

image::Accepted<void> CheckHash(std::span<const std::byte> bytes, uint64_t hash) {
  // The first half of an XXH3-128, as the index of a set has it.
  if (hash == 0 || XXH3_128bits(bytes.data(), bytes.size()).high64 == hash) return {};
  return std::unexpected(image::Reject{
      image::RejectReason::kDamaged,
      "its bytes are not those that the set's index tells of: the set was replaced or damaged"});
}

std::unexpected<Error> NoPictures(const std::string& where) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: holds no pictures: give a prepared set, or a folder with a folder of pictures "
                          "for each class",
                          where));
}

namespace {

std::unexpected<image::Reject> RejectError(const Error& error, const std::string& path) {
  return std::unexpected(image::RejectOf(error, path));
}

// Files one by one.
class FileSource final : public Source {
 public:
  FileSource(std::string folder, std::shared_ptr<const FileIndex> index, bool verify)
      : folder_(std::move(folder)), index_(std::move(index)), verify_(verify) {}

  int64_t size() const override { return index_->size(); }
  const std::vector<std::string>& classes() const override { return index_->classes(); }
  int32_t Label(int64_t sample) const override { return index_->entry(sample).label; }
  std::string Name(int64_t sample) const override {
    return fmt::format("{}/{}", folder_, index_->name(sample));
  }
  const std::string& hash() const override { return index_->set_hash(); }

  image::Accepted<std::span<const std::byte>> Read(int64_t sample, ReadBuffer& buffer) const override {
    const std::string path = Name(sample);
    const Result<dataset::OpenedFile> file = dataset::OpenRegularFile(path);
    if (!file) return RejectError(file.error(), path);
    if (file->bytes > static_cast<int64_t>(dataset::kMaxFileBytes)) {
      return std::unexpected(
          image::Reject{image::RejectReason::kTooManyBytes,
                        fmt::format("{} bytes; the most is {}", file->bytes, dataset::kMaxFileBytes)});
    }
    const std::span<std::byte> into = buffer.Get(static_cast<size_t>(file->bytes));
    const Result<size_t> got = dataset::ReadAt(file->fd, path, into, 0);
    if (!got) return RejectError(got.error(), path);
    TRY_STATUS(Check(sample, into.first(*got)));
    return into.first(*got);
  }
  image::Accepted<void> Check(int64_t sample, std::span<const std::byte> bytes) const override {
    if (!verify_) return {};
    return CheckHash(bytes, index_->entry(sample).hash);
  }
  uint64_t Version(int64_t sample) const override { return index_->entry(sample).hash; }
  Result<std::unique_ptr<SampleReads>> ReadMany(int depth) const override {
    return MakeUringReads(depth, [folder = folder_, index = index_](int64_t sample) {
      return FilePlace{.path = fmt::format("{}/{}", folder, index->name(sample))};
    });
  }
  const FileIndex* files() const override { return index_.get(); }

 private:
  const std::string folder_;
  const std::shared_ptr<const FileIndex> index_;
  const bool verify_;
};

// The names in a folder in byte order, files and folders apart. Hidden ones are left out.
struct FolderNames {
  std::vector<std::string> files, folders;
};

Result<FolderNames> ListFolder(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), ::closedir);
  if (!stream) return FailErrno(folder, errno);
  FolderNames names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    std::string name = entry->d_name;
    if (!name.starts_with('.')) {
      bool is_folder = entry->d_type == DT_DIR;
      if (entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) {
        struct stat facts{};
        is_folder = ::stat((folder + "/" + name).c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
      }
      (is_folder ? names.folders : names.files).push_back(std::move(name));
    }
    errno = 0;
  }
  if (errno != 0) return FailErrno(folder, errno);
  std::ranges::sort(names.files);
  std::ranges::sort(names.folders);
  return names;
}

// Walks over the pictures of a tree: in each folder its files, then its folders, each in byte order.
class PictureWalk {
 public:
  explicit PictureWalk(std::string root) : root_(std::move(root)) {}

  // Adds the pictures below the root's folder `inner` to `builder`; "": of the root itself.
  Status Add(const std::string& inner, int32_t label, bool deep, FileIndex::Builder& builder) {
    const int depth = inner.empty() ? 0 : 1 + static_cast<int>(std::ranges::count(inner, '/'));
    constexpr int kDeepest = 1000;  // each needs a call within a call
    if (depth > kDeepest)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}/{}: folders are nested too deep", root_, inner));
    const std::string folder = inner.empty() ? root_ : root_ + "/" + inner;
    struct stat facts{};
    if (::stat(folder.c_str(), &facts) != 0) return FailErrno(folder, errno);
    if (!visits_.Enter(depth, facts.st_dev, facts.st_ino)) return {};
    FolderNames names = TRY(ListFolder(folder));
    const std::string front = inner.empty() ? "" : inner + "/";
    for (const std::string& name : names.files) {
      if (dataset::IsNamedLikeAPicture(name)) builder.Add(front + name, label, 0, 0);
    }
    for (const std::string& name : names.folders) {
      if (deep) TRY_STATUS(Add(front + name, label, true, builder));
    }
    if (depth == 0) folders_ = std::move(names.folders);
    return {};
  }

  const std::vector<std::string>& folders() const { return folders_; }  // of the root

 private:
  const std::string root_;
  dataset::FolderVisits visits_;
  std::vector<std::string> folders_;
};

// A folder that holds no picture is no class, and what lies beside the classes' folders is left out.
Result<std::shared_ptr<const FileIndex>> ScanFolder(const std::string& folder) {
  PictureWalk walk(folder);
  FileIndex::Builder beside, builder;
  TRY_STATUS(walk.Add("", -1, false, beside));
  std::vector<std::string_view> texts;
  for (const std::string& name : walk.folders()) {
    const int64_t before = builder.size();
    TRY_STATUS(walk.Add(name, static_cast<int32_t>(texts.size()), true, builder));
    if (builder.size() > before) texts.push_back(name);
  }
  dataset::NumberedLabels numbered = TRY_CONTEXT(dataset::NumberLabels(texts), folder);
  if (texts.empty()) builder = std::move(beside);
  if (builder.size() == 0) return NoPictures(folder);
  builder.Relabel(numbered.labels);
  return std::move(builder).Finish(std::move(numbered.classes), "");
}

// Takes the list of files from options.index, or makes it and keeps it there.
template <typename Make>
Result<std::shared_ptr<const FileIndex>> KeptIndex(const SourceOptions& options, const std::string& set_hash,
                                                   const Make& make) {
  if (options.index.empty()) return make();
  if (::access(options.index.c_str(), F_OK) == 0) {
    auto index = TRY(FileIndex::Map(options.index));
    if (!set_hash.empty() && index->set_hash() != set_hash) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format(
              "{}: the index of another set, or of this one before it was made again: delete the file",
              options.index));
    }
    return index;
  }
  auto index = TRY(make());
  TRY_STATUS(index->Save(options.index));
  return index;
}

// A path without its ending.
std::string_view Stem(std::string_view path) {
  const size_t slash = path.rfind('/'), dot = path.rfind('.');
  return dot == path.npos || (slash != path.npos && dot < slash) ? path : path.substr(0, dot);
}

}  // namespace

bool HasLabels(const FileIndex& index) {
  for (int64_t i = 0; i < index.size(); ++i) {
    if (index.entry(i).label >= 0) return true;
  }
  return false;
}

Result<std::shared_ptr<const FileIndex>> ReadManifest(std::string_view text, const dataset::SetFacts& facts) {
  if (dataset::HashOf(std::as_bytes(std::span(text))) != facts.manifest_hash)
    return Fail(ErrorCode::kCorrupt, "is not the one the set was finished with");
  FileIndex::Builder builder;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const dataset::SetEntry entry =
        TRY_CONTEXT(dataset::ParseSetEntry(text.substr(0, end)), fmt::format("line {}", builder.size() + 1));
    uint64_t hash = 0;
    std::from_chars(entry.hash.data(), entry.hash.data() + std::min<size_t>(entry.hash.size(), 16), hash, 16);
    builder.Add(entry.path, entry.label.value_or(-1), static_cast<uint64_t>(entry.bytes), hash);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (builder.size() != facts.images) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{} lines, and set.json tells of {} images", builder.size(), facts.images));
  }
  return std::move(builder).Finish(facts.classes, facts.manifest_hash);
}

Result<std::shared_ptr<const FileIndex>> MatchMasks(const FileIndex& pictures, const FileIndex& masks,
                                                    const std::string& where) {
  std::unordered_map<std::string_view, int64_t> by_stem;
  by_stem.reserve(static_cast<size_t>(masks.size()));
  for (int64_t i = 0; i < masks.size(); ++i) {
    const auto [at, is_new] = by_stem.try_emplace(Stem(masks.name(i)), i);
    if (!is_new) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: {} and {} are masks of the same picture: keep one of them", where,
                              EscapeBytes(masks.name(at->second)), EscapeBytes(masks.name(i))));
    }
  }
  FileIndex::Builder builder;
  for (int64_t i = 0; i < pictures.size(); ++i) {
    const auto found = by_stem.find(Stem(pictures.name(i)));
    if (found == by_stem.end()) {
      return Fail(ErrorCode::kNotFound,
                  fmt::format("{}: no mask for {}: give it one, or leave the picture out", where,
                              EscapeBytes(pictures.name(i))));
    }
    const FileIndex::Entry& entry = masks.entry(found->second);
    builder.Add(masks.name(found->second), -1, entry.bytes, entry.hash);
  }
  return std::move(builder).Finish({}, "");
}

Result<std::shared_ptr<const Source>> OpenFolder(const std::string& folder, const SourceOptions& options) {
  auto index = TRY(KeptIndex(options, "", [&] { return ScanFolder(folder); }));
  return std::make_shared<FileSource>(folder, std::move(index), options.verify);
}

Result<std::shared_ptr<const Source>> OpenFileSet(const std::string& folder, const dataset::SetFacts& facts,
                                                  const SourceOptions& options) {
  const auto make = [&]() -> Result<std::shared_ptr<const FileIndex>> {
    constexpr uint64_t kMost = uint64_t{16} << 30;
    const std::string path = folder + "/manifest.jsonl";
    const Bytes text = TRY(ReadFile(path, kMost));
    return TRY_CONTEXT(ReadManifest(text.text(), facts), path);
  };
  auto index = TRY(KeptIndex(options, facts.manifest_hash, make));
  TRY_STATUS(CheckLabelRule(facts, HasLabels(*index), folder));
  return std::make_shared<FileSource>(folder, std::move(index), options.verify);
}

Result<std::shared_ptr<const Source>> OpenFolderOfMasks(const std::string& folder, const FileIndex& pictures,
                                                        const SourceOptions& options) {
  PictureWalk walk(folder);
  FileIndex::Builder builder;
  TRY_STATUS(walk.Add("", -1, true, builder));
  if (builder.size() == 0) return NoPictures(folder);
  const auto all = std::move(builder).Finish({}, "");
  return std::make_shared<FileSource>(folder, TRY(MatchMasks(pictures, *all, folder)), options.verify);
}

}  // namespace weir::feed
