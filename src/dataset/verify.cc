#include "dataset/verify.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/file.h"
#include "dataset/file_at.h"
#include "dataset/hash.h"
#include "dataset/line_reader.h"
#include "dataset/set.h"
#include "dataset/set_text.h"
#include "dataset/shard_format.h"
#include "image/decode.h"

namespace weir::dataset {
namespace {

constexpr int64_t kMaxRecord = int64_t{2} << 30;  // bytes
constexpr size_t kMaxExamples = 20;

// Faults of one set, counted and told.
class Verifier {
 public:
  Verifier(std::string folder, SetFacts facts, const VerifyOptions& options)
      : folder_(std::move(folder)), facts_(std::move(facts)), options_(options) {}

  Result<VerifyReport> Run() {
    LineReader manifest = TRY(LineReader::Open(folder_ + "/manifest.jsonl"));
    if (HasShards()) TRY_STATUS(BeginIndex());
    while (const auto line = TRY(manifest.Next())) {
      if (options_.stop.stop_requested()) {
        return Fail(ErrorCode::kCancelled, fmt::format("stopped after {} pictures", report_.images));
      }
      const Result<SetEntry> entry = ParseSetEntry(*line);
      if (!entry) {
        Fault(fmt::format("manifest.jsonl: line {}: {}", manifest.line(), entry.error().message));
        continue;
      }
      TRY_STATUS(HasShards() ? CheckRecord(*entry) : CheckFile(*entry));
      report_.images += 1;
      report_.bytes += entry->bytes;
      if (options_.progress) options_.progress(report_.images, facts_.images);
    }
    TRY_STATUS(EndShard());
    EndIndex();
    CheckSums();
    return std::move(report_);
  }

 private:
  bool HasShards() const { return facts_.format != SetFormat::kFiles; }
  std::string Path(const std::string& inside) const { return folder_ + "/" + inside; }

  void Fault(std::string what) {
    report_.faults += 1;
    if (report_.examples.size() < kMaxExamples) report_.examples.push_back(std::move(what));
  }

  // That the bytes are those the manifest tells of.
  void CheckPicture(const SetEntry& entry, const std::string& where, std::span<const std::byte> bytes) {
    if (HashOf(bytes) != entry.hash) Fault(fmt::format("{}: its bytes are not those of the manifest", where));
    if (!entry.sha256.empty() && Sha256Of(bytes) != entry.sha256)
      Fault(fmt::format("{}: its SHA-256 is not that of the manifest", where));
  }

  Status CheckFile(const SetEntry& entry) {
    if (entry.bytes > kMaxRecord) {
      Fault(fmt::format("{}: the manifest tells of {} bytes", entry.path, entry.bytes));
      return {};
    }
    const Result<Bytes> bytes = ReadFile(Path(entry.path), static_cast<uint64_t>(kMaxRecord));
    if (bytes) {
      CheckPicture(entry, entry.path, bytes->span());
    } else {
      Fault(bytes.error().message);
    }
    return {};
  }

  Status CheckRecord(const SetEntry& entry) {
    const std::string where = fmt::format("{}: record {}", entry.path, entry.record);
    if (entry.record != report_.images || entry.bytes > kMaxRecord ||
        (facts_.format == SetFormat::kRaw && entry.bytes != facts_.record_bytes())) {
      Fault(fmt::format("{}: the manifest's record, or its size, cannot be", where));
      return {};
    }
    if (entry.path != shard_path_) {
      TRY_STATUS(EndShard());
      TRY_STATUS(BeginShard(entry));
    }
    CheckIndexLine(entry);
    if (!shard_.valid()) return {};
    const std::optional<std::string> picture = TRY(ReadHere(entry.offset, entry.bytes));
    if (!picture) {
      Fault(fmt::format("{}: the shard ends before it does", where));
      return {};
    }
    const auto bytes = std::as_bytes(std::span(*picture));
    CheckPicture(entry, where, bytes);
    const std::optional<image::PictureFormat> format = image::SniffFormat(bytes);
    const Frame frame = MakeFrame(facts_, entry, bytes, format ? ExtensionOf(*format) : "bin");
    if (entry.offset != at_ + std::ssize(frame.before)) {
      Fault(fmt::format("{}: it stands at {}, and should at {}", where, entry.offset,
                        at_ + std::ssize(frame.before)));
    }
    TRY_STATUS(Compare(at_, frame.before, where));
    TRY_STATUS(Compare(entry.offset + entry.bytes, frame.after, where));
    at_ = entry.offset + entry.bytes + std::ssize(frame.after);
    records_ += 1;
    return {};
  }

  // That `wanted` stands at `offset` of the shard in hand.
  Status Compare(int64_t offset, const std::string& wanted, const std::string& where) {
    if (wanted.empty()) return {};
    const std::optional<std::string> found = TRY(ReadHere(offset, std::ssize(wanted)));
    if (!found || *found != wanted) {
      Fault(fmt::format("{}: the bytes around its picture are not what belongs there (byte {})", where,
                        offset));
    }
    return {};
  }

  // nullopt where the shard ends before.
  Result<std::optional<std::string>> ReadHere(int64_t offset, int64_t size) {
    std::string bytes(static_cast<size_t>(size), '\0');
    const size_t got =
        TRY(ReadAt(shard_, Path(shard_path_), std::as_writable_bytes(std::span(bytes)), offset));
    return got == bytes.size() ? std::optional(std::move(bytes)) : std::nullopt;
  }

  Status BeginShard(const SetEntry& entry) {
    shard_path_ = entry.path;
    if (entry.path != ShardPath(facts_.format, shard_number_))
      Fault(fmt::format("{}: shard {} has another name", entry.path, shard_number_));
    shard_ = UniqueFd(::open(Path(entry.path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!shard_.valid()) Fault(FailErrno(entry.path, errno).error().message);
    first_ = entry.record;
    records_ = 0;
    at_ = std::ssize(ShardBegin(facts_, 0, 0));
    return {};
  }

  // The shard's own beginning and end, and that nothing follows.
  Status EndShard() {
    if (shard_path_.empty()) return {};
    shard_number_ += 1;
    if (!shard_.valid()) return {};
    TRY_STATUS(Compare(0, ShardBegin(facts_, first_, records_), shard_path_ + ": header"));
    const std::string end = ShardEnd(facts_.format);
    TRY_STATUS(Compare(at_, end, shard_path_ + ": end"));
    struct stat found{};
    if (::fstat(shard_.get(), &found) != 0) return FailErrno(Path(shard_path_), errno);
    if (found.st_size != at_ + std::ssize(end)) {
      Fault(fmt::format("{}: {} bytes, and {} belong there", shard_path_, found.st_size,
                        at_ + std::ssize(end)));
    }
    return {};
  }

  Status BeginIndex() {
    index_ = UniqueFd(::open(Path("index.bin").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!index_.valid()) Fault(FailErrno("index.bin", errno).error().message);
    std::string begin(kIndexBegin, '\0');
    if (index_.valid() &&
        (::pread(index_.get(), begin.data(), begin.size(), 0) != kIndexBegin || begin != IndexBegin())) {
      Fault("index.bin: its beginning is not that of an index");
    }
    return {};
  }

  void CheckIndexLine(const SetEntry& entry) {
    if (!index_.valid()) return;
    std::string line(kIndexStep, '\0');
    const ssize_t got =
        ::pread(index_.get(), line.data(), line.size(), kIndexBegin + entry.record * kIndexStep);
    if (got != kIndexStep || line != IndexLine(shard_number_, entry))
      Fault(fmt::format("index.bin: record {} is not the manifest's", entry.record));
  }

  void EndIndex() {
    struct stat found{};
    if (!index_.valid() || ::fstat(index_.get(), &found) != 0) return;
    const int64_t wanted = kIndexBegin + report_.images * kIndexStep;
    if (found.st_size != wanted)
      Fault(fmt::format("index.bin: {} bytes, and {} belong there", found.st_size, wanted));
  }

  void CheckSums() {
    if (report_.images != facts_.images || report_.bytes != facts_.bytes) {
      Fault(fmt::format("set.json: tells of {} pictures of {} bytes, and the manifest of {} of {}",
                        facts_.images, facts_.bytes, report_.images, report_.bytes));
    }
    constexpr std::string_view kAnother = "it is not the one the set was finished with";
    CheckSum("manifest.jsonl", facts_.manifest_hash, kAnother);
    if (!facts_.rejects_hash.empty()) CheckSum("rejects.jsonl", facts_.rejects_hash, kAnother);
    const std::string as_written = FormatSetFacts(facts_);
    CheckSum("set.json", HashOf(std::as_bytes(std::span(as_written))), "it is not as it was written");
  }

  void CheckSum(const std::string& file, const std::string& wanted, std::string_view otherwise) {
    const Result<std::string> hash = HashOfFile(Path(file));
    if (!hash) {
      Fault(hash.error().message);
    } else if (*hash != wanted) {
      Fault(fmt::format("{}: {}", file, otherwise));
    }
  }

  const std::string folder_;
  const SetFacts facts_;
  const VerifyOptions& options_;
  VerifyReport report_;
  UniqueFd index_;
  // The shard in hand.
  std::string shard_path_;
  UniqueFd shard_;
  int64_t shard_number_ = 0, first_ = 0, records_ = 0;
  int64_t at_ = 0;  // where the next record begins
};

}  // namespace

Result<VerifyReport> VerifySet(const std::string& folder, const VerifyOptions& options) {
  return Verifier(folder, TRY(ReadSetFacts(folder)), options).Run();
}

}  // namespace weir::dataset
