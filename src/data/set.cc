#include "data/set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "data/set_text.h"

namespace weir::data {
namespace {

constexpr uint64_t kMaxFactsBytes = 64 << 20;
constexpr uint64_t kMaxManifestBytes = uint64_t{16} << 30;

// Opens a file whose size has to be `size` exactly.
Result<UniqueFd> OpenShard(const std::string& path, uint64_t size) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return FailErrno(path, errno);
  struct stat facts{};
  if (::fstat(fd.get(), &facts) != 0) return FailErrno(path, errno);
  if (!S_ISREG(facts.st_mode) || static_cast<uint64_t>(facts.st_size) != size) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: {} bytes, and set.json tells of {}", path, facts.st_size, size));
  }
  return fd;
}

// `size` bytes from `offset` on; `path` is for the message.
Result<Bytes> ReadPart(const UniqueFd& fd, const std::string& path, int64_t offset, int64_t size) {
  Bytes bytes = Bytes::AllocateUninitialized(static_cast<size_t>(size));
  for (int64_t done = 0; done < size;) {
    const ssize_t got =
        ::pread(fd.get(), bytes.mutable_data() + done, static_cast<size_t>(size - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno(path, errno);
    if (got == 0)
      return Fail(ErrorCode::kIo,
                  fmt::format("{}: shrank to less than {} bytes while it was read", path, offset + size));
    done += got;
  }
  return bytes;
}

Result<std::vector<SetEntry>> ParseManifest(std::string_view text, const SetFacts& facts) {
  std::vector<SetEntry> entries;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    SetEntry entry =
        TRY_CONTEXT(ParseSetEntry(text.substr(0, end)), fmt::format("line {}", entries.size() + 1));
    const bool raw = facts.format == SetFormat::kRaw;
    if (entry.record != (raw ? static_cast<int64_t>(entries.size()) : -1)) {
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("line {}: record {} is out of order", entries.size() + 1, entry.record));
    }
    entries.push_back(std::move(entry));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (static_cast<int64_t>(entries.size()) != facts.images) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{} lines, and set.json tells of {} images", entries.size(), facts.images));
  }
  return entries;
}

}  // namespace

Result<std::shared_ptr<const PreparedSet>> PreparedSet::Open(const std::string& folder) {
  const std::string root =
      folder.ends_with('/') && folder.size() > 1 ? folder.substr(0, folder.size() - 1) : folder;
  const std::string facts_path = root + "/set.json";
  const std::string manifest_path = root + "/manifest.jsonl";
  std::shared_ptr<PreparedSet> set(new PreparedSet);
  set->folder_ = root;
  const Bytes facts = TRY(ReadFile(facts_path, kMaxFactsBytes));
  set->facts_ = TRY_CONTEXT(ParseSetFacts(facts.text()), facts_path);
  const Bytes manifest = TRY(ReadFile(manifest_path, kMaxManifestBytes));
  if (HashOf(manifest.span()) != set->facts_.manifest_hash) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: is not the one the set was finished with", manifest_path));
  }
  set->entries_ = TRY_CONTEXT(ParseManifest(manifest.text(), set->facts_), manifest_path);
  if (set->facts_.format == SetFormat::kRaw) TRY_STATUS(set->OpenShards());
  return set;
}

Status PreparedSet::OpenShards() {
  for (int64_t first = 0; first < facts_.images; first += facts_.records_per_shard) {
    const int64_t records = std::min(facts_.records_per_shard, facts_.images - first);
    const std::string path = folder_ + "/" + ShardPath(static_cast<int64_t>(shards_.size()));
    const int64_t bytes = kShardHeaderBytes + records * facts_.record_stride();
    shards_.push_back(TRY(OpenShard(path, static_cast<uint64_t>(bytes))));
    const Bytes header = TRY(ReadPart(shards_.back(), path, 0, kShardHeaderBytes));
    if (header.text() != FormatShardHeader(facts_, first, records)) {
      return Fail(ErrorCode::kCorrupt, fmt::format("{}: its header is not the one set.json tells of", path));
    }
  }
  return {};
}

bool PreparedSet::IsSet(const std::string& folder) {
  const Result<Bytes> facts = ReadFile(folder + "/set.json", kMaxFactsBytes);
  return facts && facts->text().find("\"weir_set\"") != std::string_view::npos;
}

bool PreparedSet::IsUnfinished(const std::string& folder) {
  const auto there = [&](const char* name) { return ::access((folder + "/" + name).c_str(), F_OK) == 0; };
  return there("manifest.jsonl") && there("rejects.jsonl") && !there("set.json");
}

Result<Bytes> PreparedSet::ReadRecord(int64_t index) const {
  CHECK(facts_.format == SetFormat::kRaw && index >= 0 && index < facts_.images);
  const int64_t shard = index / facts_.records_per_shard;
  const int64_t offset = kShardHeaderBytes + index % facts_.records_per_shard * facts_.record_stride();
  return ReadPart(shards_[static_cast<size_t>(shard)], folder_ + "/" + ShardPath(shard), offset,
                  facts_.record_bytes());
}

}  // namespace weir::data
