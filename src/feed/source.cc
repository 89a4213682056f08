#include "feed/source.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/count.h"
#include "base/file.h"
#include "dataset/file_at.h"
#include "dataset/set.h"
#include "dataset/set_text.h"
#include "dataset/shard_format.h"
#include "dataset/source.h"
#include "feed/cache.h"
#include "feed/file_index.h"

namespace weir::feed {

std::span<std::byte> ReadBuffer::Get(size_t size) {
  constexpr size_t kKept = 64 << 20;  // more is given back with the next sample
  if (size > capacity_ || (capacity_ > kKept && size <= kKept)) {
    data_ = std::make_unique_for_overwrite<std::byte[]>(size + size / 4);
    capacity_ = size + size / 4;
  }
  return {data_.get(), size};
}

namespace {

std::unexpected<image::Reject> RejectError(const Error& error, const std::string& path) {
  return std::unexpected(image::RejectOf(error, path));
}

// The first half of an XXH3-128, as the index of a set has it.
uint64_t FirstHalf(std::span<const std::byte> bytes) {
  return XXH3_128bits(bytes.data(), bytes.size()).high64;
}

image::Accepted<void> CheckHash(std::span<const std::byte> bytes, uint64_t hash) {
  if (hash == 0 || FirstHalf(bytes) == hash) return {};
  return std::unexpected(image::Reject{
      image::RejectReason::kDamaged,
      "its bytes are not those that the set's index tells of: the set was replaced or damaged"});
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
    if (verify_) TRY_STATUS(CheckHash(into.first(*got), index_->entry(sample).hash));
    return into.first(*got);
  }

 private:
  const std::string folder_;
  const std::shared_ptr<const FileIndex> index_;
  const bool verify_;
};

// Records of shards, found by the set's mapped index.bin.
class ShardSource final : public Source {
 public:
  struct Record {
    uint32_t shard;
    int32_t label;
    uint64_t offset, bytes, hash;
  };
  static_assert(sizeof(Record) == dataset::kIndexStep);

  static Result<std::shared_ptr<const Source>> Open(const std::string& folder, dataset::SetFacts facts,
                                                    bool verify) {
    std::shared_ptr<ShardSource> source(new ShardSource(folder, std::move(facts), verify));
    TRY_STATUS(source->MapIndex());
    TRY_STATUS(source->OpenShards());
    return source;
  }
  ~ShardSource() override {
    if (mapped_ != nullptr) ::munmap(mapped_, mapped_bytes_);
  }

  int64_t size() const override { return facts_.images; }
  const std::vector<std::string>& classes() const override { return facts_.classes; }
  int32_t Label(int64_t sample) const override { return record(sample).label; }
  std::string Name(int64_t sample) const override {
    return fmt::format("{}#{}", ShardName(record(sample).shard), sample);
  }
  const std::string& hash() const override { return facts_.manifest_hash; }
  std::optional<RawShape> raw() const override {
    if (facts_.format != dataset::SetFormat::kRaw) return std::nullopt;
    return RawShape{facts_.size->width, facts_.size->height, facts_.channels};
  }

  image::Accepted<std::span<const std::byte>> Read(int64_t sample, ReadBuffer& buffer) const override {
    const Record& wanted = record(sample);
    const std::string& path = ShardName(wanted.shard);
    const std::span<std::byte> into = buffer.Get(wanted.bytes);
    const Result<size_t> got =
        dataset::ReadAt(shards_[wanted.shard].fd, path, into, static_cast<int64_t>(wanted.offset));
    if (!got) return RejectError(got.error(), path);
    if (*got < into.size())
      return std::unexpected(image::Reject{image::RejectReason::kVanished, "its shard became shorter"});
    // A raw record has nothing that a decoder would find wrong, and hashing it takes as long as all the rest.
    if (verify_ && facts_.format != dataset::SetFormat::kRaw) TRY_STATUS(CheckHash(into, wanted.hash));
    return into;
  }

 private:
  struct Shard {
    std::string path;
    UniqueFd fd;
  };

  ShardSource(std::string folder, dataset::SetFacts facts, bool verify)
      : folder_(std::move(folder)), facts_(std::move(facts)), verify_(verify) {}

  const Record& record(int64_t sample) const { return records_[sample]; }
  const std::string& ShardName(uint32_t shard) const { return shards_[shard].path; }

  Status MapIndex() {
    const std::string path = folder_ + "/index.bin";
    const dataset::OpenedFile file = TRY(dataset::OpenRegularFile(path));
    const int64_t wanted = dataset::kIndexBegin + dataset::kIndexStep * facts_.images;
    if (file.bytes != wanted) {
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("{}: {} bytes, and {} pictures take {}: the index is of another set", path,
                              file.bytes, Count(facts_.images), wanted));
    }
    void* at = ::mmap(nullptr, static_cast<size_t>(wanted), PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
    if (at == MAP_FAILED) return FailErrno(path, errno);
    mapped_ = at;
    mapped_bytes_ = static_cast<size_t>(wanted);
    const std::string begin = dataset::IndexBegin();
    if (std::memcmp(mapped_, begin.data(), begin.size()) != 0)
      return Fail(ErrorCode::kCorrupt, fmt::format("{}: not the index of a prepared set", path));
    records_ = reinterpret_cast<const Record*>(static_cast<const std::byte*>(mapped_) + dataset::kIndexBegin);
    return {};
  }

  // Opens each shard that a record names, and holds its size against its records.
  Status OpenShards() {
    std::vector<uint64_t> ends;
    const std::string path = folder_ + "/index.bin";
    for (int64_t i = 0; i < facts_.images; ++i) {
      const Record& r = records_[i];
      const auto wrong = [&](const char* why) {
        return Fail(ErrorCode::kCorrupt, fmt::format("{}: record {}: {}", path, i, why));
      };
      // Shards stand one after the other, so a number that skips one is wrong.
      if (r.shard > ends.size()) return wrong("its shard is out of order");
      if (r.shard == ends.size()) ends.push_back(0);
      if (r.bytes > dataset::kMaxFileBytes) return wrong("larger than any picture may be");
      if (r.offset > uint64_t{1} << 60) return wrong("its offset is out of range");
      if (r.label < -1 || (!facts_.classes.empty() && r.label >= std::ssize(facts_.classes)))
        return wrong("its label is none of the set's classes");
      if (facts_.format == dataset::SetFormat::kRaw && static_cast<int64_t>(r.bytes) != facts_.record_bytes())
        return wrong("its size is not that of the set's records");
      ends[r.shard] = std::max(ends[r.shard], r.offset + r.bytes);
    }
    AllowOpenFiles(ends.size());
    for (size_t shard = 0; shard < ends.size(); ++shard) {
      std::string name =
          fmt::format("{}/{}", folder_, dataset::ShardPath(facts_.format, static_cast<int64_t>(shard)));
      dataset::OpenedFile file = TRY(dataset::OpenRegularFile(name));
      if (static_cast<uint64_t>(file.bytes) < ends[shard]) {
        return Fail(ErrorCode::kCorrupt,
                    fmt::format("{}: {} bytes, and its last record ends at {}: the shard is cut, or "
                                "the index is of another set",
                                name, file.bytes, ends[shard]));
      }
      shards_.push_back({std::move(name), std::move(file.fd)});
    }
    return {};
  }

  static void AllowOpenFiles(size_t files) {
    constexpr rlim_t kOthers = 256;  // of the rest of the program
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= files + kOthers) return;
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, files + kOthers);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }

  const std::string folder_;
  const dataset::SetFacts facts_;
  const bool verify_;
  void* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  const Record* records_ = nullptr;
  std::vector<Shard> shards_;
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

// Adds the pictures below `root`/`inner`, deepest folders after the files beside them.
Status AddPictures(const std::string& root, const std::string& inner, int32_t label, int depth,
                   FileIndex::Builder& builder) {
  constexpr int kDeepest = 40;  // links may go in circles
  if (depth > kDeepest)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}/{}: folders are nested too deep", root, inner));
  const FolderNames names = TRY(ListFolder(root + "/" + inner));
  const std::string front = inner.empty() ? "" : inner + "/";
  for (const std::string& name : names.files) {
    if (dataset::IsNamedLikeAPicture(name)) builder.Add(front + name, label, 0, 0);
  }
  for (const std::string& name : names.folders)
    TRY_STATUS(AddPictures(root, front + name, label, depth + 1, builder));
  return {};
}

Result<std::shared_ptr<const FileIndex>> ScanFolder(const std::string& folder) {
  const FolderNames names = TRY(ListFolder(folder));
  FileIndex::Builder builder;
  std::vector<std::string> classes;
  if (names.folders.empty()) {
    TRY_STATUS(AddPictures(folder, "", -1, 0, builder));
  } else {
    for (const std::string& name : names.folders) {
      if (name.find('\n') != name.npos)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("{}: a class with a line feed in its name", folder));
      TRY_STATUS(AddPictures(folder, name, static_cast<int32_t>(classes.size()), 0, builder));
      classes.push_back(name);
    }
  }
  if (builder.size() == 0) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "{}: holds no pictures: give a prepared set, or a folder with a folder of pictures for each "
            "class",
            folder));
  }
  return std::move(builder).Finish(std::move(classes), "");
}

// The pictures of a prepared set of files.
Result<std::shared_ptr<const FileIndex>> ReadManifest(const std::string& folder,
                                                      const dataset::SetFacts& facts) {
  const auto set = TRY(dataset::PreparedSet::Open(folder));
  FileIndex::Builder builder;
  for (const dataset::SetEntry& entry : set->entries()) {
    uint64_t hash = 0;
    std::from_chars(entry.hash.data(), entry.hash.data() + std::min<size_t>(entry.hash.size(), 16), hash, 16);
    builder.Add(entry.path, entry.label.value_or(-1), static_cast<uint64_t>(entry.bytes), hash);
  }
  return std::move(builder).Finish(facts.classes, facts.manifest_hash);
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

}  // namespace

namespace {

Result<std::shared_ptr<const Source>> OpenUncached(const std::string& path, const SourceOptions& options) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return FailErrno(path, errno);
  if (!S_ISDIR(facts.st_mode)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: not a folder: give a prepared set, or a folder by classes", path));
  }
  const std::string folder = path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  if (dataset::PreparedSet::IsUnfinished(folder)) {
    return Fail(
        ErrorCode::kCorrupt,
        fmt::format(
            "{}: the making of this set is not finished: run its command again, which goes on with it",
            folder));
  }
  if (!dataset::PreparedSet::IsSet(folder)) {
    auto index = TRY(KeptIndex(options, "", [&] { return ScanFolder(folder); }));
    return std::make_shared<FileSource>(folder, std::move(index), options.verify);
  }
  dataset::SetFacts set = TRY(dataset::ReadSetFacts(folder));
  if (set.images == 0) return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: the set is empty", folder));
  if (set.format != dataset::SetFormat::kFiles)
    return ShardSource::Open(folder, std::move(set), options.verify);
  auto index = TRY(KeptIndex(options, set.manifest_hash, [&] { return ReadManifest(folder, set); }));
  return std::make_shared<FileSource>(folder, std::move(index), options.verify);
}

}  // namespace

Result<std::shared_ptr<const Source>> OpenSource(const std::string& path, const SourceOptions& options) {
  auto source = TRY(OpenUncached(path, options));
  return options.cache_bytes > 0 ? CacheInMemory(std::move(source), options.cache_bytes) : source;
}

}  // namespace weir::feed
