#include "dataset/set_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <utility>

#include "base/fields.h"
#include "dataset/append_file.h"
#include "dataset/file_at.h"
#include "dataset/hash.h"
#include "dataset/set_text.h"
#include "dataset/shard_format.h"
#include "dataset/shard_writer.h"
#include "image/decode.h"

namespace weir::dataset {
namespace {

constexpr int64_t kFilesPerFolder = 1000;
constexpr const char* kManifest = "/manifest.jsonl";
constexpr const char* kRejects = "/rejects.jsonl";
constexpr const char* kIndex = "/index.bin";

bool HasShards(const SetFacts& facts) { return facts.format != SetFormat::kFiles; }

std::string SubFolder(int64_t image) { return fmt::format("/pictures/{:05}", image / kFilesPerFolder); }

Status SyncFolder(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return FailErrno(folder, errno);
  return {};
}

bool HoldsAtLeast(const std::string& path, int64_t bytes) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 && facts.st_size >= bytes;
}

// The number that a name of our own begins with: "00000012.jpg", "000003.tar.part".
std::optional<int64_t> NumberOf(const std::string& name) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end == name.data()) return std::nullopt;
  return number;
}

// Takes away what a folder of numbered entries holds from `first` on.
Status RemoveFrom(const std::string& folder, int64_t first) {
  std::error_code error;
  std::vector<std::filesystem::path> late;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::optional<int64_t> number = NumberOf(entry.path().filename());
    if (number && *number >= first) late.push_back(entry.path());
  }
  if (error && error.value() != ENOENT) return FailErrno(folder, error.value());
  for (const auto& path : late) {
    std::filesystem::remove_all(path, error);
    if (error) return FailErrno(path.string(), error.value());
  }
  return {};
}

// A set.json that was killed while it was written lies under a name of its own.
Status RemoveUnfinishedFacts(const std::string& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("set.json.") && name.ends_with(".tmp")) left.push_back(entry.path());
  }
  if (error && error.value() != ENOENT) return FailErrno(folder, error.value());
  for (const auto& path : left) {
    if (::unlink(path.c_str()) != 0) return FailErrno(path.string(), errno);
  }
  return {};
}

// The facts that the writer itself sees to.
Result<SetFacts> Complete(SetFacts facts, int64_t shard_bytes, const SetPoint& point) {
  const bool raw = facts.format == SetFormat::kRaw;
  if (raw && !facts.size) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "raw records need pictures of one size: a recipe with a crop, or a resize to width and height");
  }
  facts.shard_bytes = HasShards(facts) ? shard_bytes : 0;
  facts.records_per_shard =
      raw ? std::max<int64_t>(1, (shard_bytes - kShardHeaderBytes) / facts.record_stride()) : 0;
  facts.images = point.images;
  facts.bytes = point.bytes;
  facts.rejected = point.rejected;
  return facts;
}

}  // namespace

template <typename F>
void Describe(F& fields, Described<F, SetPoint>& point) {
  fields.FromZero("images", point.images);
  fields.FromZero("bytes", point.bytes);
  fields.FromZero("manifest_bytes", point.manifest_bytes);
  fields.FromZero("rejects_bytes", point.rejects_bytes);
  fields.FromZero("shard", point.shard);
  fields.FromZero("shard_bytes", point.shard_bytes);
  fields.FromZero("shard_records", point.shard_records);
  fields.Require(point.shard_records <= point.images, "key \"shard_records\" is more than the images");
  fields("rejected", point.rejected);
}

Json SetPoint::ToValue() const {
  Json json;
  FieldWriter writer(json);
  Describe(writer, *this);
  return json;
}

Result<SetPoint> SetPoint::FromValue(const Json& json) {
  SetPoint point;
  FieldReader reader(json);
  Describe(reader, point);
  TRY_STATUS(reader.status());
  return point;
}

Status Settle(Unsettled& unsettled) {
  for (const UniqueFd& fd : unsettled.open) {
    if (unsettled.whole_file_system ? ::syncfs(fd.get()) != 0 : ::fdatasync(fd.get()) != 0)
      return FailErrno("writing to the disk", errno);
    if (unsettled.whole_file_system) break;
  }
  for (const Unsettled::ClosedShard& shard : unsettled.closed) {
    if (::fdatasync(shard.fd.get()) != 0) return FailErrno(shard.path, errno);
    if (::rename(shard.written_as.c_str(), shard.path.c_str()) != 0) return FailErrno(shard.path, errno);
  }
  if (!unsettled.closed.empty())
    return SyncFolder(std::filesystem::path(unsettled.closed.back().path).parent_path());
  return {};
}

struct SetWriter::State {
  std::string Path(std::string_view inside) const { return fmt::format("{}/{}", folder, inside); }
  Status WriteFile(const Picture& picture, SetEntry& entry);
  Status WriteRecord(const Picture& picture, SetEntry& entry);

  std::string folder;
  SetFacts facts;  // images, bytes and rejected so far
  std::optional<AppendFile> manifest, rejects, index;
  std::optional<ShardWriter> shards;
  int64_t made_folder = -1;  // the newest sub-folder of pictures that is there
};

Status SetWriter::CheckIsFree(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return {};
  if (PreparedSet::IsSet(folder)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: a finished set is there; remove it, or choose another folder", folder));
  }
  if (PreparedSet::IsUnfinished(folder)) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: holds a set whose making was broken off, and nothing to go on with; remove it first",
                    folder));
  }
  const auto used = [&]() -> Status {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: is not an empty folder; remove it, or choose another", folder));
  };
  if (!std::filesystem::is_directory(folder, error)) return used();
  const bool empty = std::filesystem::is_empty(folder, error);
  if (error) return FailErrno(folder, error.value());
  return empty ? Status() : used();
}

Result<SetWriter> SetWriter::Create(const std::string& folder, SetFacts facts, int64_t shard_bytes) {
  TRY_STATUS(CheckIsFree(folder));
  return Open(folder, std::move(facts), shard_bytes, {});
}

Result<SetWriter> SetWriter::Resume(const std::string& folder, SetFacts facts, int64_t shard_bytes,
                                    const SetPoint& point) {
  // From here on it is not finished any more; this is gone first.
  const std::string finished = folder + "/set.json";
  if (::unlink(finished.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR)
    return FailErrno(finished, errno);
  TRY_STATUS(RemoveUnfinishedFacts(folder));
  if (HasShards(facts)) {
    TRY_STATUS(RemoveFrom(folder + "/shards", point.shard + (point.shard_bytes > 0 ? 1 : 0)));
  } else {
    TRY_STATUS(RemoveFrom(folder + "/pictures", (point.images + kFilesPerFolder - 1) / kFilesPerFolder));
    TRY_STATUS(RemoveFrom(folder + SubFolder(point.images), point.images));
  }
  return Open(folder, std::move(facts), shard_bytes, point);
}

Result<SetWriter> SetWriter::Open(const std::string& folder, SetFacts facts, int64_t shard_bytes,
                                  const SetPoint& point) {
  auto state = std::make_unique<State>();
  state->folder = folder;
  state->facts = TRY(Complete(std::move(facts), shard_bytes, point));
  const bool shards = HasShards(state->facts);
  TRY_STATUS(MakeFolders(folder + (shards ? "/shards" : "/pictures")));
  using enum AppendFile::Hashed;
  state->manifest = TRY(AppendFile::Open(folder + kManifest, point.manifest_bytes, kYes));
  state->rejects = TRY(AppendFile::Open(folder + kRejects, point.rejects_bytes, kYes));
  if (shards) {
    const bool begun = point.images > 0;
    state->index =
        TRY(AppendFile::Open(folder + kIndex, begun ? kIndexBegin + point.images * kIndexStep : 0, kNo));
    if (!begun) TRY_STATUS(state->index->Add(IndexBegin()));
    state->shards = TRY(ShardWriter::Open(folder, state->facts, point));
  }
  return SetWriter(std::move(state));
}

bool SetWriter::CanResume(const std::string& folder, const SetFacts& facts, const SetPoint& point) {
  if (!HoldsAtLeast(folder + kManifest, point.manifest_bytes) ||
      !HoldsAtLeast(folder + kRejects, point.rejects_bytes)) {
    return false;
  }
  if (!HasShards(facts)) return true;
  if (point.images > 0 && !HoldsAtLeast(folder + kIndex, kIndexBegin + point.images * kIndexStep))
    return false;
  for (int64_t shard = 0; shard < point.shard; ++shard) {
    if (!HoldsAtLeast(folder + "/" + ShardPath(facts.format, shard), 1)) return false;
  }
  const std::string path = folder + "/" + ShardPath(facts.format, point.shard);
  return point.shard_bytes == 0 || HoldsAtLeast(path, point.shard_bytes) ||
         HoldsAtLeast(path + kPartSuffix, point.shard_bytes);
}

SetWriter::SetWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
SetWriter::SetWriter(SetWriter&&) noexcept = default;
SetWriter::~SetWriter() = default;

Status SetWriter::State::WriteFile(const Picture& picture, SetEntry& entry) {
  const int64_t sub_folder = facts.images / kFilesPerFolder;
  if (sub_folder != made_folder) {
    TRY_STATUS(MakeFolders(folder + SubFolder(facts.images)));
    made_folder = sub_folder;
  }
  entry.path = fmt::format("{}/{:08}.{}", SubFolder(facts.images).substr(1), facts.images, picture.extension);
  const std::string path = Path(entry.path);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return FailErrno(path, errno);
  return WriteAt(fd, path, picture.bytes, 0);
}

Status SetWriter::State::WriteRecord(const Picture& picture, SetEntry& entry) {
  if (facts.format == SetFormat::kRaw) CHECK(std::ssize(picture.bytes) == facts.record_bytes());
  entry.record = facts.images;
  const Frame frame = MakeFrame(facts, entry, picture.bytes, picture.extension);
  const int64_t at =
      TRY(shards->MakeRoom(std::ssize(frame.before) + std::ssize(picture.bytes) + std::ssize(frame.after)));
  entry.offset = at + std::ssize(frame.before);
  entry.path = ShardPath(facts.format, shards->shard());
  TRY_STATUS(shards->Append(frame, picture.bytes));
  return index->Add(IndexLine(shards->shard(), entry));
}

Result<SetEntry> SetWriter::Add(const Picture& picture) {
  State& s = *state_;
  SetEntry entry;
  entry.source = EscapeBytes(picture.source);
  entry.input = picture.input;
  entry.label = picture.label;
  entry.hash = picture.hash.empty() ? HashOf(picture.bytes) : std::string(picture.hash);
  entry.bytes = std::ssize(picture.bytes);
  entry.width = picture.width;
  entry.height = picture.height;
  entry.sha256 = picture.sha256;
  entry.source_hash = picture.source_hash;
  entry.source_bytes = picture.source_bytes;
  entry.source_sha256 = picture.source_sha256;
  if (s.facts.geometry) entry.recipe = GeometryHash(*s.facts.geometry);
  TRY_STATUS(HasShards(s.facts) ? s.WriteRecord(picture, entry) : s.WriteFile(picture, entry));
  TRY_STATUS(s.manifest->AddLine(FormatSetEntry(entry)));
  s.facts.images += 1;
  s.facts.bytes += entry.bytes;
  return entry;
}

Status SetWriter::Repeat(const SetEntry& entry) {
  const Bytes bytes = TRY(ReadEntry(state_->folder, entry));
  return Copy(entry, bytes.span());
}

Status SetWriter::Copy(const SetEntry& entry, std::span<const std::byte> bytes) {
  const SetFacts& facts = state_->facts;
  if (facts.format == SetFormat::kRaw && std::ssize(bytes) != facts.record_bytes()) {
    return Fail(ErrorCode::kCorrupt, fmt::format("{}: {} bytes are no record of {}", entry.source,
                                                 bytes.size(), facts.record_bytes()));
  }
  const std::string source = TRY(UnescapeBytes(entry.source));
  std::string extension = std::filesystem::path(entry.path).extension().string();
  extension.erase(0, 1);  // its dot
  if (HasShards(facts)) {
    const std::optional<image::PictureFormat> format = image::SniffFormat(bytes);
    extension = format ? ExtensionOf(*format) : "bin";
  }
  TRY_STATUS(Add({.source = source,
                  .input = entry.input,
                  .label = entry.label,
                  .bytes = bytes,
                  .extension = extension,
                  .hash = entry.hash,
                  .width = entry.width,
                  .height = entry.height,
                  .sha256 = entry.sha256,
                  .source_hash = entry.source_hash,
                  .source_sha256 = entry.source_sha256,
                  .source_bytes = entry.source_bytes}));
  return {};
}

Status SetWriter::AddReject(std::string_view source, int64_t input, std::string_view reason,
                            std::string_view detail) {
  return AddReject({.source = EscapeBytes(source),
                    .input = input,
                    .reason = std::string(reason),
                    .detail = EscapeBytes(detail)});
}

Status SetWriter::AddReject(const RejectEntry& entry) {
  state_->facts.rejected[entry.reason] += 1;
  return state_->rejects->AddLine(FormatRejectEntry(entry));
}

Status SetWriter::AddReject(std::string_view source, const image::Reject& reject) {
  return AddReject(source, -1, ToString(reject.reason), reject.detail);
}

Result<SetPoint> SetWriter::Flush() {
  State& s = *state_;
  TRY_STATUS(s.manifest->Flush());
  TRY_STATUS(s.rejects->Flush());
  if (s.index) TRY_STATUS(s.index->Flush());
  SetPoint point;
  point.images = s.facts.images;
  point.bytes = s.facts.bytes;
  point.rejected = s.facts.rejected;
  point.manifest_bytes = s.manifest->bytes();
  point.rejects_bytes = s.rejects->bytes();
  if (s.shards) {
    point.shard = s.shards->shard();
    point.shard_bytes = s.shards->shard_bytes();
    point.shard_records = s.shards->shard_records();
  }
  return point;
}

Result<Unsettled> SetWriter::TakeUnsettled() {
  State& s = *state_;
  Unsettled unsettled;
  unsettled.whole_file_system = !HasShards(s.facts);
  unsettled.open.push_back(TRY(s.manifest->Duplicate()));
  unsettled.open.push_back(TRY(s.rejects->Duplicate()));
  if (s.index) unsettled.open.push_back(TRY(s.index->Duplicate()));
  if (s.shards) TRY_STATUS(s.shards->TakeUnsettled(unsettled));
  return unsettled;
}

int64_t SetWriter::images() const { return state_->facts.images; }

int64_t SetWriter::manifest_bytes() const { return state_->manifest->bytes(); }

Result<SetEntry> SetWriter::EntryAt(int64_t manifest_byte) {
  TRY_STATUS(state_->manifest->Flush());
  const std::string line = TRY(state_->manifest->LineAt(manifest_byte));
  return TRY_CONTEXT(ParseSetEntry(line), state_->folder + kManifest);
}

Result<SetFacts> SetWriter::Finish() {
  State& s = *state_;
  if (s.shards) TRY_STATUS(s.shards->Close());
  TRY(Flush());
  Unsettled unsettled = TRY(TakeUnsettled());
  TRY_STATUS(Settle(unsettled));
  s.facts.manifest_hash = s.manifest->Hash();
  s.facts.rejects_hash = s.rejects->Hash();
  TRY_STATUS(WriteFileWhole(s.Path("set.json"), FormatSetFacts(s.facts), Durability::kSynced));
  TRY_STATUS(SyncFolder(s.folder));
  return s.facts;
}

}  // namespace weir::dataset
