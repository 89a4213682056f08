#include "identity/index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "base/json.h"
#include "base/seed.h"
#include "base/text.h"
#include "dataset/hash.h"
#include "identity/scan.h"

namespace weir::identity {
namespace {

constexpr uint64_t kMaxLogBytes = uint64_t{1} << 34;

std::string ManifestPath(const std::string& folder) { return folder + "/index.json"; }

std::string ManifestText(size_t dimension, const std::string& model_hash, uint64_t generation, bool sealed) {
  Json json;
  json["format"] = "weir identities 1";
  json["dimension"] = dimension;
  json["model_hash"] = model_hash;
  json["generation"] = generation;
  json["sealed"] = sealed;
  const std::string text = DumpJson(json);
  return text + fmt::format("\n{:08x}\n", dataset::Crc32c(std::as_bytes(std::span(text))));
}

struct Manifest {
  size_t dimension = 0;
  std::string model_hash;
  uint64_t generation = 0;
  bool sealed = false;
};

Result<Manifest> ParseManifest(std::string_view text) {
  const size_t line = text.find('\n');
  const std::string_view body = text.substr(0, line);
  if (line == std::string_view::npos ||
      text.substr(line + 1) != fmt::format("{:08x}\n", dataset::Crc32c(std::as_bytes(std::span(body)))))
    return Fail(ErrorCode::kCorrupt, "the checksum is wrong: restore the folder from a copy");
  const Json json = TRY(ParseJson(body));
  Manifest manifest;
  const int64_t dimension = TRY(GetInteger(json, "dimension"));
  const int64_t generation = TRY(GetInteger(json, "generation"));
  if (TRY(GetString(json, "format")) != "weir identities 1" || dimension < 1 ||
      dimension > static_cast<int64_t>(kMaxDimension) || generation < 1)
    return Fail(ErrorCode::kCorrupt, "not an index of this version");
  manifest.dimension = static_cast<size_t>(dimension);
  manifest.generation = static_cast<uint64_t>(generation);
  manifest.model_hash = TRY(GetString(json, "model_hash"));
  manifest.sealed = json.contains("sealed") && json["sealed"].is_boolean() && json["sealed"].get<bool>();
  return manifest;
}

Result<UniqueFd> OpenLog(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd.valid()) return FailErrno(path, errno);
  return fd;
}

Row RowOf(const SegmentView& view, uint64_t at) {
  Row row;
  row.name = view.name(at);
  row.values.assign(view.values + at * view.dimension, view.values + (at + 1) * view.dimension);
  row.scale = view.scales[at];
  const size_t words = WordsOf(view.dimension);
  for (size_t w = 0; w < words; ++w)
    row.signs.push_back(view.codes[at / kGroup * kGroup * words + kGroup * w + at % kGroup]);
  return row;
}

}  // namespace

Index::Index(std::string folder, size_t dimension, std::string model_hash)
    : folder_(std::move(folder)), dimension_(dimension), model_hash_(std::move(model_hash)) {}

std::string Index::LogPath(uint64_t generation) const {
  return fmt::format("{}/{}.log", folder_, generation);
}
std::string Index::SegmentPath(uint64_t generation) const {
  return fmt::format("{}/{}.identities", folder_, generation);
}

Status Index::Create(const std::string& folder, size_t dimension, const std::string& model_hash) {
  if (dimension < 1 || dimension > kMaxDimension)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("a dimension of {}: 1 to {}", dimension, kMaxDimension));
  TRY_STATUS(MakeFolders(folder));
  if (::access(ManifestPath(folder).c_str(), F_OK) == 0)
    return Fail(ErrorCode::kInvalidArgument, folder + ": holds an index already: enrol adds to it");
  if (::chmod(folder.c_str(), 0700) != 0) return FailErrno(folder, errno);
  TRY_STATUS(WritePrivateFile(folder + "/1.log", ""));
  return WritePrivateFile(ManifestPath(folder), ManifestText(dimension, model_hash, 1, false));
}

Status Index::WriteManifest(uint64_t generation, bool sealed) const {
  return WritePrivateFile(ManifestPath(folder_), ManifestText(dimension_, model_hash_, generation, sealed));
}

Result<std::unique_ptr<Index>> Index::Open(const std::string& folder, Access access,
                                           const std::string& model_hash) {
  const std::string path = ManifestPath(folder);
  UniqueFd lock;
  if (access == Access::kWrite) {
    if (::access(path.c_str(), F_OK) != 0) return FailErrno(path, errno);
    lock = UniqueFd(::open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock.valid()) return FailErrno(folder + "/lock", errno);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
      return Fail(ErrorCode::kOverloaded,
                  folder + ": another process writes to it: try again when it has ended");
  }
  // A reader can meet the moment between the new manifest and the removal of the old files: it reads again.
  for (int tries = 0;; ++tries) {
    const std::string text = TRY(ReadTextFile(path));
    const Manifest manifest = TRY_CONTEXT(ParseManifest(text), path);
    if (!model_hash.empty() && manifest.model_hash != model_hash) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: made with the model of hash {}, not {}: embed the pictures again with this model",
                      folder, manifest.model_hash.empty() ? "(none named)" : manifest.model_hash,
                      model_hash));
    }
    std::unique_ptr<Index> index(new Index(folder, manifest.dimension, manifest.model_hash));
    {
      MutexLock writing(index->write_mutex_);
      index->generation_ = manifest.generation;
    }
    Status status;
    if (manifest.sealed) {
      auto segment = Segment::Open(index->SegmentPath(manifest.generation));
      if (!segment) {
        status = std::unexpected(segment.error());
      } else if ((*segment)->view().dimension != manifest.dimension) {
        return Fail(ErrorCode::kCorrupt, folder + ": the sealed file has another dimension than index.json");
      } else {
        MutexLock lock_rows(index->mutex_);
        index->segment_ = *std::move(segment);
      }
    }
    if (status) status = index->Load(access);
    if (status) {
      index->lock_ = std::move(lock);
      return index;
    }
    const bool moved = access == Access::kRead && tries < 10 && TRY(ReadTextFile(path)) != text;
    if (moved) continue;
    if (status.error().code == ErrorCode::kNotFound) status.error().code = ErrorCode::kCorrupt;
    return std::unexpected(status.error());
  }
}

Status Index::Load(Access access) {
  MutexLock writing(write_mutex_);
  const std::string path = LogPath(generation_);
  const Bytes bytes = TRY(ReadFile(path, kMaxLogBytes));
  const LogContents contents = TRY_CONTEXT(ParseLog(bytes.span(), dimension_), path);
  {
    MutexLock lock(mutex_);
    for (const LogRecord& record : contents.records) TRY_STATUS(Remember(record));
    torn_bytes_ = contents.torn_bytes;
  }
  if (access == Access::kRead) return {};
  log_ = TRY(OpenLog(path));
  log_records_ = contents.records.size();
  log_bytes_ = contents.whole_bytes;
  if (contents.torn_bytes > 0 && ::ftruncate(log_.get(), static_cast<off_t>(log_bytes_)) != 0)
    return FailErrno(path, errno);
  // What a kill left between the new manifest and the removal of the old files, or before the new manifest.
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().string();
    const bool ours = name.ends_with(".log") || name.ends_with(".identities") || name.ends_with(".tmp");
    if (ours && name != path && name != SegmentPath(generation_)) ::unlink(name.c_str());
  }
  return {};
}

Status Index::Remember(const LogRecord& record) {
  if (record.kind == LogRecord::Kind::kEnrol) {
    tail_.push_back(std::make_shared<const Row>(TRY(MakeRow(record.name, record.vector))));
    return {};
  }
  std::erase_if(tail_, [&](const auto& row) { return row->name == record.name; });
  if (segment_ == nullptr || dead_.contains(record.name)) return {};
  const SegmentView& view = segment_->view();
  uint64_t found = 0;
  for (uint64_t row = 0; row < view.rows; ++row) found += view.name(row) == record.name;
  if (found > 0) dead_.insert(record.name);
  dead_rows_ += found;
  return {};
}

IndexFacts Index::facts() const {
  MutexLock lock(mutex_);
  IndexFacts facts;
  facts.dimension = dimension_;
  facts.model_hash = model_hash_;
  facts.sealed = segment_ == nullptr ? 0 : segment_->view().rows - dead_rows_;
  facts.rows = facts.sealed + tail_.size();
  facts.torn_bytes = torn_bytes_;
  return facts;
}

Status Index::Append(std::span<const LogRecord> records) {
  if (!log_.valid()) return Fail(ErrorCode::kInvalidArgument, folder_ + ": opened for reading only");
  if (log_failed_)
    return Fail(ErrorCode::kIo,
                folder_ + ": an earlier write failed and could not be undone: open the index again");
  std::string text;
  for (size_t i = 0; i < records.size(); ++i) text += FormatLogRecord(records[i], log_records_ + i);
  const std::string path = LogPath(generation_);
  Status status = WriteAll(log_.get(), path, std::as_bytes(std::span(text)));
  if (status && ::fdatasync(log_.get()) != 0) status = FailErrno(path, errno);
  if (!status) {
    log_failed_ = ::ftruncate(log_.get(), static_cast<off_t>(log_bytes_)) != 0;
    return status;
  }
  log_records_ += records.size();
  log_bytes_ += text.size();
  return {};
}

Status Index::Enrol(std::span<const Enrolment> rows) {
  std::vector<LogRecord> records;
  std::vector<std::shared_ptr<const Row>> made;
  for (const Enrolment& row : rows) {
    if (row.vector.size() != dimension_) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("identity {}: {} values, the index has {}",
                                                           Quoted(row.name), row.vector.size(), dimension_));
    }
    made.push_back(std::make_shared<const Row>(TRY(MakeRow(row.name, row.vector))));
    records.push_back({LogRecord::Kind::kEnrol, row.name, row.vector});
  }
  MutexLock writing(write_mutex_);
  TRY_STATUS(Append(records));
  MutexLock lock(mutex_);
  tail_.insert(tail_.end(), made.begin(), made.end());
  return {};
}

Result<uint64_t> Index::Delete(const std::string& name) {
  MutexLock writing(write_mutex_);
  const uint64_t before = facts().rows;
  const LogRecord record{LogRecord::Kind::kDelete, name, {}};
  {
    bool found = false;
    MutexLock lock(mutex_);
    for (const auto& row : tail_) found = found || row->name == name;
    if (segment_ != nullptr && !dead_.contains(name)) {
      const SegmentView& view = segment_->view();
      for (uint64_t row = 0; row < view.rows && !found; ++row) found = view.name(row) == name;
    }
    if (!found)
      return Fail(ErrorCode::kNotFound, fmt::format("identity {}: not in {}", Quoted(name), folder_));
  }
  TRY_STATUS(Append(std::span(&record, 1)));
  {
    MutexLock lock(mutex_);
    TRY_STATUS(Remember(record));
  }
  const uint64_t removed = before - facts().rows;
  TRY_STATUS(SealLocked());
  return removed;
}

Status Index::Seal() {
  MutexLock writing(write_mutex_);
  return SealLocked();
}

Status Index::SealLocked() {
  if (!log_.valid()) return Fail(ErrorCode::kInvalidArgument, folder_ + ": opened for reading only");
  std::shared_ptr<const Segment> old;
  std::set<std::string, std::less<>> dead;
  std::vector<std::shared_ptr<const Row>> tail;
  {
    MutexLock lock(mutex_);
    old = segment_;
    dead = dead_;
    tail = tail_;
  }
  const uint64_t next = generation_ + 1;
  SegmentWriter writer = TRY(SegmentWriter::Open(SegmentPath(next), dimension_));
  for (uint64_t row = 0; old != nullptr && row < old->view().rows; ++row) {
    if (!dead.contains(old->view().name(row))) TRY_STATUS(writer.Add(RowOf(old->view(), row)));
  }
  for (const auto& row : tail) TRY_STATUS(writer.Add(*row));
  TRY_STATUS(writer.Finish());
  auto segment = TRY(Segment::Open(SegmentPath(next)));
  TRY_STATUS(WritePrivateFile(LogPath(next), ""));
  UniqueFd log = TRY(OpenLog(LogPath(next)));
  TRY_STATUS(WriteManifest(next, true));
  ::unlink(LogPath(generation_).c_str());
  ::unlink(SegmentPath(generation_).c_str());
  TRY_STATUS(SyncFolder(folder_));
  generation_ = next;
  log_ = std::move(log);
  log_records_ = log_bytes_ = 0;
  MutexLock lock(mutex_);
  segment_ = std::move(segment);
  dead_.clear();
  dead_rows_ = 0;
  tail_.clear();
  torn_bytes_ = 0;
  return {};
}

Result<std::vector<std::vector<Match>>> Index::Search(std::span<const std::vector<float>> queries,
                                                      const SearchOptions& options) const {
  std::vector<Row> wanted;
  std::vector<uint64_t> codes;
  for (const std::vector<float>& query : queries) {
    if (query.size() != dimension_) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("a query of {} values, the index has {}", query.size(), dimension_));
    }
    wanted.push_back(TRY(MakeRow("query", query)));
    codes.insert(codes.end(), wanted.back().signs.begin(), wanted.back().signs.end());
  }
  std::shared_ptr<const Segment> segment;
  std::set<std::string, std::less<>> dead;
  std::vector<std::shared_ptr<const Row>> tail;
  {
    MutexLock lock(mutex_);
    segment = segment_;
    dead = dead_;
    tail = tail_;
  }
  std::vector<std::vector<Match>> answers(queries.size());
  const auto offer = [&](size_t q, std::string_view name, const int8_t* values, float scale) {
    const double score = Product(wanted[q].values.data(), values, dimension_) *
                         static_cast<double>(wanted[q].scale) * static_cast<double>(scale);
    if (score >= options.threshold) answers[q].push_back({std::string(name), score});
  };
  if (segment != nullptr && segment->view().rows > 0) {
    const SegmentView& view = segment->view();
    const size_t words = WordsOf(dimension_);
    const auto parts = static_cast<size_t>(std::max(options.threads, 1));
    const size_t part = (view.rows / parts + kGroup) / kGroup * kGroup;
    std::vector<std::vector<Nearest>> nearest(
        parts, std::vector<Nearest>(queries.size(), Nearest(options.candidates)));
    const auto scan = [&](size_t p) {
      const size_t first = std::min<size_t>(p * part, view.rows),
                   last = std::min<size_t>(first + part, view.rows);
      if (first < last) ScanCodes(view.codes, first, last, words, codes.data(), nearest[p]);
    };
    {
      std::vector<std::jthread> helpers;
      for (size_t p = 1; p < parts; ++p) helpers.emplace_back(scan, p);
      scan(0);
    }
    for (size_t q = 0; q < queries.size(); ++q) {
      std::vector<Candidate> candidates;
      for (auto& found : nearest) {
        const std::vector<Candidate> of_part = found[q].Take();
        candidates.insert(candidates.end(), of_part.begin(), of_part.end());
      }
      std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
        return a.distance != b.distance ? a.distance < b.distance : a.row < b.row;
      });
      if (candidates.size() > options.candidates) candidates.resize(options.candidates);
      for (const Candidate& c : candidates) {
        if (dead.empty() || !dead.contains(view.name(c.row)))
          offer(q, view.name(c.row), view.values + c.row * dimension_, view.scales[c.row]);
      }
    }
  }
  for (size_t q = 0; q < queries.size(); ++q) {
    for (const auto& row : tail) offer(q, row->name, row->values.data(), row->scale);
    std::ranges::sort(answers[q], [](const Match& a, const Match& b) {
      return a.score != b.score ? a.score > b.score : a.name < b.name;
    });
    if (answers[q].size() > options.best) answers[q].resize(options.best);
  }
  return answers;
}

std::vector<Index::Enrolment> Index::Export(bool with_vectors) const {
  std::vector<Enrolment> rows;
  const auto add = [&](std::string_view name, const int8_t* values, float scale) {
    Enrolment row{std::string(name), {}};
    for (size_t i = 0; with_vectors && i < dimension_; ++i)
      row.vector.push_back(static_cast<float>(values[i]) * scale);
    rows.push_back(std::move(row));
  };
  MutexLock lock(mutex_);
  if (segment_ != nullptr) {
    const SegmentView& view = segment_->view();
    for (uint64_t row = 0; row < view.rows; ++row) {
      if (!dead_.contains(view.name(row)))
        add(view.name(row), view.values + row * dimension_, view.scales[row]);
    }
  }
  for (const auto& row : tail_) add(row->name, row->values.data(), row->scale);
  return rows;
}

std::optional<double> Index::MeanSquaredCosine(uint64_t seed) const {
  constexpr int kPairs = 20000;
  std::shared_ptr<const Segment> segment;
  std::vector<std::shared_ptr<const Row>> tail;
  {
    MutexLock lock(mutex_);
    segment = segment_;
    tail = tail_;
  }
  const uint64_t sealed = segment == nullptr ? 0 : segment->view().rows, rows = sealed + tail.size();
  if (rows < 100) return std::nullopt;
  Random random(seed);
  const auto draw = [&] {
    const auto at = static_cast<uint64_t>(random.Integer(0, static_cast<int64_t>(rows) - 1));
    return at < sealed ? RowOf(segment->view(), at) : *tail[at - sealed];
  };
  double sum = 0;
  int pairs = 0;
  for (int i = 0; i < kPairs; ++i) {
    const Row a = draw(), b = draw();
    if (a.name == b.name) continue;
    const double cosine = Product(a.values.data(), b.values.data(), dimension_) *
                          static_cast<double>(a.scale) * static_cast<double>(b.scale);
    sum += cosine * cosine;
    ++pairs;
  }
  if (pairs == 0) return std::nullopt;
  return sum / pairs;
}

}  // namespace weir::identity
