#include "feed/array_source.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/count.h"
#include "base/file.h"
#include "base/json.h"
#include "dataset/file_at.h"
#include "dataset/hash.h"
#include "feed/array_header.h"
#include "feed/uring_reads.h"

namespace weir::feed {
namespace {

constexpr std::string_view kEnding = ".npy", kLabelsEnding = ".labels.npy";

struct ArrayFile {
  std::string path;
  UniqueFd fd;
  ArrayHeader header;
  int64_t first = 0;  // number of its first record
};

class ArraySource final : public Source {
 public:
  ArraySource(std::vector<ArrayFile> files, std::vector<int32_t> labels, std::string hash)
      : files_(std::move(files)), labels_(std::move(labels)), hash_(std::move(hash)) {}

  int64_t size() const override { return files_.back().first + files_.back().header.records; }
  const std::vector<std::string>& classes() const override { return classes_; }
  int32_t Label(int64_t sample) const override {
    return labels_.empty() ? -1 : labels_[static_cast<size_t>(sample)];
  }
  std::string Name(int64_t sample) const override {
    const ArrayFile& file = FileOf(sample);
    return fmt::format("{}#{}", file.path, sample - file.first);
  }
  const std::string& hash() const override { return hash_; }
  std::optional<RecordForm> records() const override { return files_.front().header.form; }

  image::Accepted<std::span<const std::byte>> Read(int64_t sample, ReadBuffer& buffer) const override {
    const FilePlace place = PlaceOf(sample);
    const std::span<std::byte> into = buffer.Get(place.bytes);
    const ArrayFile& file = FileOf(sample);
    const Result<size_t> got = dataset::ReadAt(file.fd, file.path, into, place.offset);
    if (!got) return std::unexpected(image::RejectOf(got.error(), file.path));
    TRY_STATUS(Check(sample, into.first(*got)));
    return into;
  }
  image::Accepted<void> Check(int64_t, std::span<const std::byte> bytes) const override {
    if (bytes.size() == files_.front().header.form.bytes) return {};
    return std::unexpected(image::Reject{image::RejectReason::kVanished, "its file became shorter"});
  }
  Result<std::unique_ptr<SampleReads>> ReadMany(int depth) const override {
    return MakeUringReads(depth, [this](int64_t sample) { return PlaceOf(sample); });
  }

 private:
  const ArrayFile& FileOf(int64_t sample) const {
    return *std::prev(std::ranges::upper_bound(files_, sample, {}, &ArrayFile::first));
  }
  FilePlace PlaceOf(int64_t sample) const {
    const ArrayFile& file = FileOf(sample);
    const size_t bytes = file.header.form.bytes;
    return {.path = file.path,
            .fd = file.fd.get(),
            .offset =
                static_cast<int64_t>(file.header.begin) + (sample - file.first) * static_cast<int64_t>(bytes),
            .bytes = bytes};
  }

  const std::vector<ArrayFile> files_;
  const std::vector<int32_t> labels_;
  const std::vector<std::string> classes_;
  const std::string hash_;
};

struct OpenedArray {
  ArrayFile file;
  int64_t bytes = 0;
};

Result<OpenedArray> OpenArray(const std::string& path) {
  dataset::OpenedFile file = TRY(dataset::OpenRegularFile(path));
  std::vector<std::byte> head(kMostArrayHeaderBytes + 16);
  head.resize(TRY(dataset::ReadAt(file.fd, path, head, 0)));
  OpenedArray opened;
  opened.file.path = path;
  opened.file.header = TRY_CONTEXT(ParseArrayHeader(head), path);
  opened.file.fd = std::move(file.fd);
  opened.bytes = file.bytes;
  const ArrayHeader& header = opened.file.header;
  const auto room = static_cast<uint64_t>(file.bytes) - std::min<uint64_t>(file.bytes, header.begin);
  if (static_cast<uint64_t>(header.records) > room / header.form.bytes) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: {} bytes, and {} records of {} bytes are told of: the file is cut", path,
                            file.bytes, Count(header.records), header.form.bytes));
  }
  return opened;
}

// Adds what tells this array from another: its header and its ends.
Status AddToHash(const OpenedArray& array, dataset::StreamHash& hash) {
  constexpr int64_t kEnd = 64 << 10;
  std::vector<std::byte> part(static_cast<size_t>(kEnd));
  for (const int64_t at : {int64_t{0}, std::max<int64_t>(0, array.bytes - kEnd)}) {
    const size_t got = TRY(dataset::ReadAt(array.file.fd, array.file.path, part, at));
    hash.Add(std::span(part).first(got));
  }
  hash.Add(std::as_bytes(std::span(&array.bytes, 1)));
  return {};
}

// Returns the labels of one file's records, whatever whole numbers they are kept as.
Result<std::vector<int32_t>> ReadLabels(const std::string& path, int64_t records) {
  const OpenedArray array = TRY(OpenArray(path));
  const ArrayHeader& header = array.file.header;
  const char order = header.form.type[0], kind = header.form.type[1];
  const size_t size = header.form.bytes;
  if (!header.form.shape.empty() || (kind != 'i' && kind != 'u') || order == '>' || size > sizeof(int64_t)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: labels are whole numbers in one dimension, little-endian", path));
  }
  if (header.records != records) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} labels for {} records", path, Count(header.records), Count(records)));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(records) * size);
  if (TRY(dataset::ReadAt(array.file.fd, path, bytes, static_cast<int64_t>(header.begin))) != bytes.size())
    return Fail(ErrorCode::kCorrupt, fmt::format("{}: the file is cut", path));
  std::vector<int32_t> labels;
  labels.reserve(static_cast<size_t>(records));
  for (int64_t i = 0; i < records; ++i) {
    uint64_t raw = 0;
    std::memcpy(&raw, bytes.data() + static_cast<size_t>(i) * size, size);
    const auto unused = static_cast<int>(64 - 8 * size);
    const int64_t value =
        kind == 'i' ? static_cast<int64_t>(raw << unused) >> unused : static_cast<int64_t>(raw);
    if (value < -1 || value > INT32_MAX)
      return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: label {} of record {}", path, value, i));
    labels.push_back(static_cast<int32_t>(value));
  }
  return labels;
}

std::vector<std::string> ArraysOf(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return {path};
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with('.') && name.ends_with(kEnding) && !name.ends_with(kLabelsEnding))
      paths.push_back(path + "/" + name);
  }
  std::ranges::sort(paths);
  return paths;
}

}  // namespace

bool IsArray(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path.ends_with(kEnding);
  return !ArraysOf(path).empty();
}

Result<std::shared_ptr<const Source>> OpenArrays(const std::string& path) {
  std::vector<ArrayFile> files;
  std::vector<int32_t> labels;
  dataset::StreamHash hash;
  int64_t records = 0;
  for (const std::string& name : ArraysOf(path)) {
    OpenedArray array = TRY(OpenArray(name));
    if (!files.empty() && files.front().header.form != array.file.header.form) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: its records have another type or shape than "
                                                           "those of {}",
                                                           name, files.front().path));
    }
    TRY_STATUS(AddToHash(array, hash));
    const std::string beside = name.substr(0, name.size() - kEnding.size()) + std::string(kLabelsEnding);
    const bool has_labels = std::filesystem::exists(beside);
    if (!files.empty() && has_labels != !labels.empty()) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: some arrays have labels and others none: give all of them, or none",
                              has_labels ? beside : name));
    }
    if (has_labels) {
      const std::vector<int32_t> more = TRY(ReadLabels(beside, array.file.header.records));
      labels.insert(labels.end(), more.begin(), more.end());
      hash.Add(std::as_bytes(std::span(more)));
    }
    if (array.file.header.records == 0) continue;
    array.file.first = records;
    records += array.file.header.records;
    files.push_back(std::move(array.file));
  }
  if (files.empty()) return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: holds no record", path));
  return std::make_shared<ArraySource>(std::move(files), std::move(labels), hash.Digest());
}

}  // namespace weir::feed
