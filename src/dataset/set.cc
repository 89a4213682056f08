#include "dataset/set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "dataset/file_at.h"
#include "dataset/hash.h"
#include "dataset/set_text.h"
#include "dataset/shard_format.h"

namespace weir::dataset {
namespace {

constexpr uint64_t kMaxFactsBytes = 64 << 20;
constexpr uint64_t kMaxManifestBytes = uint64_t{16} << 30;

// The contents of a shard according to the manifest.
struct ShardContents {
  int64_t first = 0, records = 0;
  int64_t end = 0;  // of the last record's picture
};

// `size` bytes from `offset` on; `path` is for the message.
Result<Bytes> ReadPart(const UniqueFd& fd, const std::string& path, int64_t offset, int64_t size) {
  Bytes bytes = Bytes::AllocateUninitialized(static_cast<size_t>(size));
  const std::span<std::byte> into(bytes.mutable_data(), bytes.size());
  if (TRY(ReadAt(fd, path, into, offset)) == bytes.size()) return bytes;
  return Fail(ErrorCode::kIo,
              fmt::format("{}: shrank to less than {} bytes while it was read", path, offset + size));
}

Result<std::vector<SetEntry>> ParseManifest(std::string_view text, const SetFacts& facts) {
  std::vector<SetEntry> entries;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    SetEntry entry =
        TRY_CONTEXT(ParseSetEntry(text.substr(0, end)), fmt::format("line {}", entries.size() + 1));
    const bool shards = facts.format != SetFormat::kFiles;
    if (entry.record != (shards ? static_cast<int64_t>(entries.size()) : -1)) {
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

// Raises the soft limit of open files where it is too low for `files` more; the hard limit is left.
void AllowOpenFiles(size_t files) {
  constexpr rlim_t kOthers = 256;  // of the rest of the program
  const rlim_t wanted = files + kOthers;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(limit.rlim_max, wanted);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Result<Bytes> ReadEntry(const std::string& folder, const SetEntry& entry) {
  const std::string path = fmt::format("{}/{}", folder, entry.path);
  UniqueFd fd;
  for (const std::string& name : {path, path + kPartSuffix, path}) {  // it may get its last name meanwhile
    if (!fd.valid()) fd = UniqueFd(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  }
  if (!fd.valid()) return FailErrno(path, errno);
  return ReadPart(fd, path, entry.offset, entry.bytes);
}

Result<SetFacts> ReadSetFacts(const std::string& folder) {
  const std::string path = folder + "/set.json";
  const Bytes text = TRY(ReadFile(path, kMaxFactsBytes));
  return TRY_CONTEXT(ParseSetFacts(text.text()), path);
}

Status CheckLabelRule(const SetFacts& facts, bool has_labels, const std::string& where) {
  if (facts.label_rule != LabelRule::kUnknown || (!has_labels && facts.classes.empty())) return {};
  const char* const remedy = facts.format == SetFormat::kRaw
                                 ? "prepare it again from its sources: weir prepare SRC --format raw -o NEW"
                                 : "number them anew: weir prepare {} -o NEW (with the --labels it was made "
                                   "with, where classes have names like 01)";
  return Fail(ErrorCode::kUnsupported,
              fmt::format("{}: an older program numbered its classes, by another rule: {}", where,
                          fmt::format(fmt::runtime(remedy), where)));
}

Status CheckLabelRule(const PreparedSet& set) {
  const bool labelled =
      std::ranges::any_of(set.entries(), [](const SetEntry& entry) { return entry.label.has_value(); });
  return CheckLabelRule(set.facts(), labelled, set.folder());
}

Result<std::shared_ptr<const PreparedSet>> PreparedSet::Open(const std::string& folder) {
  const std::string root =
      folder.ends_with('/') && folder.size() > 1 ? folder.substr(0, folder.size() - 1) : folder;
  const std::string manifest_path = root + "/manifest.jsonl";
  std::shared_ptr<PreparedSet> set(new PreparedSet);
  set->folder_ = root;
  set->facts_ = TRY(ReadSetFacts(root));
  const Bytes manifest = TRY(ReadFile(manifest_path, kMaxManifestBytes));
  if (HashOf(manifest.span()) != set->facts_.manifest_hash) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: is not the one the set was finished with", manifest_path));
  }
  set->entries_ = TRY_CONTEXT(ParseManifest(manifest.text(), set->facts_), manifest_path);
  if (set->facts_.format == SetFormat::kRaw) TRY_STATUS(set->CheckRecords());
  if (set->facts_.format != SetFormat::kFiles) TRY_STATUS(set->OpenShards());
  return set;
}

// That a raw set's records stand where their size says.
Status PreparedSet::CheckRecords() const {
  for (const SetEntry& entry : entries_) {
    const int64_t place = entry.record % facts_.records_per_shard;
    if (entry.bytes == facts_.record_bytes() &&
        entry.offset == kShardHeaderBytes + place * facts_.record_stride() &&
        entry.path == ShardPath(SetFormat::kRaw, entry.record / facts_.records_per_shard)) {
      continue;
    }
    return Fail(ErrorCode::kCorrupt, fmt::format("{}/manifest.jsonl: record {} cannot stand where it says",
                                                 folder_, entry.record));
  }
  return {};
}

Status PreparedSet::OpenShards() {
  std::vector<ShardContents> contents;
  for (const SetEntry& entry : entries_) {
    if (shards_.empty() || shards_.back().path != entry.path) {
      shards_.push_back({entry.path, {}});
      contents.push_back({entry.record, 0, 0});
    }
    contents.back().records += 1;
    contents.back().end = std::max(contents.back().end, entry.offset + entry.bytes);
    shard_of_.push_back(static_cast<uint32_t>(shards_.size() - 1));
  }
  AllowOpenFiles(shards_.size());
  for (size_t i = 0; i < shards_.size(); ++i) {
    const std::string path = folder_ + "/" + shards_[i].path;
    OpenedFile file = TRY(OpenRegularFile(path));
    shards_[i].fd = std::move(file.fd);
    const bool raw = facts_.format == SetFormat::kRaw;
    const int64_t wanted =
        raw ? kShardHeaderBytes + contents[i].records * facts_.record_stride() : contents[i].end;
    if (raw ? file.bytes != wanted : file.bytes < wanted) {
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("{}: {} bytes, and the manifest tells of {}", path, file.bytes, wanted));
    }
    if (!raw) continue;
    const Bytes header = TRY(ReadPart(shards_[i].fd, path, 0, kShardHeaderBytes));
    if (header.text() != FormatShardHeader(facts_, contents[i].first, contents[i].records)) {
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
  CHECK(facts_.format != SetFormat::kFiles && index >= 0 && index < facts_.images);
  const Shard& shard = shards_[shard_of_[static_cast<size_t>(index)]];
  const SetEntry& entry = entries_[static_cast<size_t>(index)];
  return ReadPart(shard.fd, folder_ + "/" + shard.path, entry.offset, entry.bytes);
}

}  // namespace weir::dataset
