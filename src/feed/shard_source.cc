#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "dataset/file_at.h"
#include "dataset/set.h"
#include "feed/local_source.h"
#include "feed/shard_index.h"
#include "feed/uring_reads.h"

namespace weir::feed {
namespace {

std::unexpected<image::Reject> RejectError(const Error& error, const std::string& path) {
  return std::unexpected(image::RejectOf(error, path));
}

// Records of shards, found by the set's mapped index.bin.
class ShardSource final : public Source {
 public:
  static Result<std::shared_ptr<const Source>> Open(const std::string& folder, dataset::SetFacts facts,
                                                    bool verify) {
    std::shared_ptr<ShardSource> source(new ShardSource(folder, std::move(facts), verify));
    TRY_STATUS(source->Begin());
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
    const ShardRecord& wanted = record(sample);
    const std::string& path = ShardName(wanted.shard);
    const std::span<std::byte> into = buffer.Get(wanted.bytes);
    const Result<size_t> got =
        dataset::ReadAt(shards_[wanted.shard].fd, path, into, static_cast<int64_t>(wanted.offset));
    if (!got) return RejectError(got.error(), path);
    if (*got < into.size())
      return std::unexpected(image::Reject{image::RejectReason::kVanished, "its shard became shorter"});
    TRY_STATUS(Check(sample, into));
    return into;
  }
  image::Accepted<void> Check(int64_t sample, std::span<const std::byte> bytes) const override {
    // A raw record has nothing that a decoder would find wrong, and hashing it takes as long as all the rest.
    if (!verify_ || facts_.format == dataset::SetFormat::kRaw) return {};
    return CheckHash(bytes, record(sample).hash);
  }
  uint64_t Version(int64_t sample) const override { return record(sample).hash; }
  Result<std::unique_ptr<SampleReads>> ReadMany(int depth) const override {
    return MakeUringReads(depth, [this](int64_t sample) {
      const ShardRecord& wanted = record(sample);
      return FilePlace{.path = ShardName(wanted.shard),
                       .fd = shards_[wanted.shard].fd.get(),
                       .offset = static_cast<int64_t>(wanted.offset),
                       .bytes = wanted.bytes};
    });
  }

 private:
  struct Shard {
    std::string path;
    UniqueFd fd;
  };

  ShardSource(std::string folder, dataset::SetFacts facts, bool verify)
      : folder_(std::move(folder)), facts_(std::move(facts)), verify_(verify) {}

  const ShardRecord& record(int64_t sample) const { return records_[static_cast<size_t>(sample)]; }
  const std::string& ShardName(uint32_t shard) const { return shards_[shard].path; }

  // Maps the index, opens each shard that it names, and holds the shard's size against it.
  Status Begin() {
    const std::string path = folder_ + "/index.bin";
    const dataset::OpenedFile file = TRY(dataset::OpenRegularFile(path));
    if (file.bytes > 0) {
      void* at = ::mmap(nullptr, static_cast<size_t>(file.bytes), PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
      if (at == MAP_FAILED) return FailErrno(path, errno);
      mapped_ = at;
      mapped_bytes_ = static_cast<size_t>(file.bytes);
    }
    const ShardIndex index =
        TRY(ReadShardIndex({static_cast<const std::byte*>(mapped_), mapped_bytes_}, facts_, path));
    records_ = index.records;
    AllowOpenFiles(index.ends.size());
    for (size_t shard = 0; shard < index.ends.size(); ++shard) {
      std::string name =
          fmt::format("{}/{}", folder_, dataset::ShardPath(facts_.format, static_cast<int64_t>(shard)));
      dataset::OpenedFile opened = TRY(dataset::OpenRegularFile(name));
      if (static_cast<uint64_t>(opened.bytes) < index.ends[shard]) {
        return Fail(ErrorCode::kCorrupt,
                    fmt::format("{}: {} bytes, and its last record ends at {}: the shard is cut, or "
                                "the index is of another set",
                                name, opened.bytes, index.ends[shard]));
      }
      shards_.push_back({std::move(name), std::move(opened.fd)});
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
  std::span<const ShardRecord> records_;
  std::vector<Shard> shards_;
};

}  // namespace

Result<std::shared_ptr<const Source>> OpenShards(const std::string& folder, dataset::SetFacts facts,
                                                 const SourceOptions& options) {
  return ShardSource::Open(folder, std::move(facts), options.verify);
}

}  // namespace weir::feed
