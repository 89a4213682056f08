#include "data/set_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "data/set_text.h"

namespace weir::data {
namespace {

constexpr int64_t kFilesPerFolder = 1000;
constexpr size_t kLinesBuffered = 1 << 20;  // bytes

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

Result<UniqueFd> OpenNew(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) return FailErrno(path, errno);
  return fd;
}

Status WriteAt(const UniqueFd& fd, const std::string& path, std::span<const std::byte> bytes,
               int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd.get(), bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return FailErrno(path, errno);
    bytes = bytes.subspan(static_cast<size_t>(put));
    offset += put;
  }
  return {};
}

Result<Bytes> ReadAt(const std::string& path, int64_t offset, int64_t size) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return FailErrno(path, errno);
  Bytes bytes = Bytes::AllocateUninitialized(static_cast<size_t>(size));
  for (int64_t done = 0; done < size;) {
    const ssize_t got =
        ::pread(fd.get(), bytes.mutable_data() + done, static_cast<size_t>(size - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno(path, errno);
    if (got == 0) return Fail(ErrorCode::kIo, fmt::format("{}: shrank while it was copied", path));
    done += got;
  }
  return bytes;
}

// A file of lines, written through a buffer and hashed on the way.
class Lines {
 public:
  static Result<Lines> Create(std::string path) {
    UniqueFd fd = TRY(OpenNew(path));
    return Lines(std::move(path), std::move(fd));
  }

  Status Add(std::string_view line) {
    buffer_ += line;
    buffer_ += '\n';
    return buffer_.size() < kLinesBuffered ? Status() : Flush();
  }

  Status Flush() {
    TRY_STATUS(WriteAt(fd_, path_, BytesOf(buffer_), written_));
    written_ += static_cast<int64_t>(buffer_.size());
    XXH3_128bits_update(hash_.get(), buffer_.data(), buffer_.size());
    buffer_.clear();
    return {};
  }

  // Of all that was flushed.
  std::string Hash() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(hash_.get());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  Lines(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {
    XXH3_128bits_reset(hash_.get());
  }

  std::string path_;
  UniqueFd fd_;
  std::string buffer_;
  int64_t written_ = 0;
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash_{XXH3_createState(), XXH3_freeState};
};

}  // namespace

struct SetWriter::State {
  State(std::string folder, SetFacts facts, Lines manifest, Lines rejects)
      : folder(std::move(folder)),
        facts(std::move(facts)),
        manifest(std::move(manifest)),
        rejects(std::move(rejects)) {}

  std::string Path(std::string_view inside) const { return fmt::format("{}/{}", folder, inside); }
  Status WriteFile(const Picture& picture, SetEntry& entry);
  Status WriteRecord(const Picture& picture, SetEntry& entry);
  Status CloseShard();

  const std::string folder;
  SetFacts facts;  // images and bytes so far
  Lines manifest, rejects;
  UniqueFd shard;  // the one being filled, for raw
  bool finished = false;
};

Result<SetWriter> SetWriter::Create(const std::string& folder, SetFacts facts, int64_t shard_bytes) {
  std::error_code error;
  if (std::filesystem::exists(folder, error)) {
    if (PreparedSet::IsSet(folder)) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: a finished set is there; remove it, or choose another folder", folder));
    }
    if (PreparedSet::IsUnfinished(folder)) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: holds a set whose making was broken off; remove it first", folder));
    }
    if (!std::filesystem::is_empty(folder, error) || error) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: is not an empty folder; remove it, or choose another", folder));
    }
  }
  const bool raw = facts.format == SetFormat::kRaw;
  if (raw && !facts.size) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "raw records need pictures of one size: a recipe with a crop, or a resize to width and height");
  }
  facts.records_per_shard =
      raw ? std::max<int64_t>(1, (shard_bytes - kShardHeaderBytes) / facts.record_stride()) : 0;
  TRY_STATUS(MakeFolders(folder + (raw ? "/shards" : "/pictures")));
  Lines manifest = TRY(Lines::Create(folder + "/manifest.jsonl"));
  Lines rejects = TRY(Lines::Create(folder + "/rejects.jsonl"));
  return SetWriter(
      std::make_unique<State>(folder, std::move(facts), std::move(manifest), std::move(rejects)));
}

SetWriter::SetWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
SetWriter::SetWriter(SetWriter&&) noexcept = default;

SetWriter::~SetWriter() {
  if (!state_ || state_->finished) return;
  // The folder was empty when it was taken, so all of this is our own.
  for (const char* name : {"pictures", "shards", "manifest.jsonl", "rejects.jsonl"}) {
    std::error_code ignored;
    std::filesystem::remove_all(state_->Path(name), ignored);
  }
  ::rmdir(state_->folder.c_str());
}

Status SetWriter::State::WriteFile(const Picture& picture, SetEntry& entry) {
  const int64_t sub_folder = facts.images / kFilesPerFolder;
  if (facts.images % kFilesPerFolder == 0)
    TRY_STATUS(MakeFolders(Path(fmt::format("pictures/{:05}", sub_folder))));
  entry.path = fmt::format("pictures/{:05}/{:08}.{}", sub_folder, facts.images, picture.extension);
  const std::string path = Path(entry.path);
  const UniqueFd fd = TRY(OpenNew(path));
  return WriteAt(fd, path, picture.bytes, 0);
}

Status SetWriter::State::WriteRecord(const Picture& picture, SetEntry& entry) {
  CHECK(static_cast<int64_t>(picture.bytes.size()) == facts.record_bytes());
  const int64_t place = facts.images % facts.records_per_shard;
  if (place == 0) TRY_STATUS(CloseShard());
  entry.path = ShardPath(facts.images / facts.records_per_shard);
  entry.record = facts.images;
  const std::string path = Path(entry.path);
  if (place == 0) shard = TRY(OpenNew(path));
  return WriteAt(shard, path, picture.bytes, kShardHeaderBytes + place * facts.record_stride());
}

// Gives the shard its padding to the end and its header, which tells how many records it got.
Status SetWriter::State::CloseShard() {
  if (!shard.valid()) return {};
  const int64_t last = (facts.images - 1) / facts.records_per_shard;
  const int64_t first = last * facts.records_per_shard;
  const int64_t records = facts.images - first;
  const std::string path = Path(ShardPath(last));
  if (::ftruncate(shard.get(), kShardHeaderBytes + records * facts.record_stride()) != 0)
    return FailErrno(path, errno);
  TRY_STATUS(WriteAt(shard, path, BytesOf(FormatShardHeader(facts, first, records)), 0));
  shard = UniqueFd();
  return {};
}

Result<SetEntry> SetWriter::Add(const Picture& picture) {
  State& s = *state_;
  SetEntry entry;
  entry.source = EscapeBytes(picture.source);
  entry.label = picture.label;
  entry.hash = HashOf(picture.bytes);
  entry.bytes = static_cast<int64_t>(picture.bytes.size());
  TRY_STATUS(s.facts.format == SetFormat::kRaw ? s.WriteRecord(picture, entry) : s.WriteFile(picture, entry));
  TRY_STATUS(s.manifest.Add(FormatSetEntry(entry)));
  s.facts.images += 1;
  s.facts.bytes += entry.bytes;
  return entry;
}

Status SetWriter::Repeat(const SetEntry& entry) {
  const State& s = *state_;
  const std::string path = s.Path(entry.path);
  int64_t offset = 0;
  if (entry.record >= 0)
    offset = kShardHeaderBytes + entry.record % s.facts.records_per_shard * s.facts.record_stride();
  const Bytes bytes = TRY(ReadAt(path, offset, entry.bytes));
  const std::string source = TRY(UnescapeBytes(entry.source));
  const std::string extension = std::filesystem::path(entry.path).extension().string().substr(1);
  TRY_STATUS(Add({.source = source, .label = entry.label, .bytes = bytes.span(), .extension = extension}));
  return {};
}

Status SetWriter::AddReject(std::string_view source, const Reject& reject) {
  const std::string reason(ToString(reject.reason));
  state_->facts.rejected[reason] += 1;
  return state_->rejects.Add(DumpJson(
      {{"source", EscapeBytes(source)}, {"reason", reason}, {"detail", EscapeBytes(reject.detail)}}));
}

Result<SetFacts> SetWriter::Finish() {
  State& s = *state_;
  TRY_STATUS(s.CloseShard());
  TRY_STATUS(s.manifest.Flush());
  TRY_STATUS(s.rejects.Flush());
  s.facts.manifest_hash = s.manifest.Hash();
  TRY_STATUS(WriteFileWhole(s.Path("set.json"), FormatSetFacts(s.facts)));
  s.finished = true;
  return s.facts;
}

}  // namespace weir::data
