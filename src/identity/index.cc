#include "identity/index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/text.h"
#include "base/thread.h"
#include "identity/calibrate.h"

namespace weir::identity {
namespace {

constexpr uint64_t kMaxLogBytes = uint64_t{1} << 34;
constexpr Duration kFollowPeriod = 25ms;
constexpr uint64_t kQuicklyMeasured = 20'000;  // rows

}  // namespace

Status Index::Create(const std::string& folder, const CreateOptions& options) {
  if (options.dimension < 2 || options.dimension > kMaxDimension)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("a dimension of {}: 2 to {} may be", options.dimension, kMaxDimension));
  if (!(options.mate_cosine > 0 && options.mate_cosine < 1))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("a cosine of mates of {}: above 0 and below 1 may be", options.mate_cosine));
  const int bits = options.bits == 0 ? CodeLayout::BitsFor(options.dimension) : options.bits;
  if (bits != 1 && bits != 2 && bits != 4)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("codes of {} bits: 1, 2 or 4 may be", bits));
  TRY_STATUS(MakeFolders(folder));
  if (::access(ManifestPath(folder).c_str(), F_OK) == 0)
    return Fail(ErrorCode::kInvalidArgument, folder + ": holds an index already: enrol adds to it");
  if (::chmod(folder.c_str(), 0700) != 0) return FailErrno(folder, errno);
  Manifest manifest;
  manifest.dimension = options.dimension;
  manifest.bits = bits;
  manifest.model_hash = options.model_hash;
  manifest.mate_cosine = options.mate_cosine;
  TRY(CreatePrivateFile(folder + "/1.log"));
  Disk disk;
  TRY_STATUS(disk.SyncFolder(folder));
  return WritePrivateFile(disk, ManifestPath(folder), FormatManifest(manifest));
}

Index::Index(std::string folder, const Options& options, const Manifest& manifest)
    : folder_(std::move(folder)),
      model_hash_(manifest.model_hash),
      options_(options),
      disk_(options.disk == nullptr ? own_disk_ : *options.disk),
      layout_{manifest.dimension, manifest.bits},
      rotation_(manifest.dimension),
      owner_(OwnerOf(manifest)),
      team_(options.threads),
      build_team_(options.access == Access::kWrite ? options.threads : 1) {}

Index::~Index() {
  maintainer_.request_stop();
  {
    MutexLock lock(mutex_);  // the maintainer tests the request under it, so that it does not miss the notice
    changed_.NotifyAll();
  }
  if (maintainer_.joinable()) maintainer_.join();
}

std::string Index::LogPath(uint64_t number) const { return fmt::format("{}/{}.log", folder_, number); }
std::string Index::SegmentPath(uint64_t number) const {
  return fmt::format("{}/{}.identities", folder_, number);
}

Result<std::unique_ptr<Index>> Index::Open(const std::string& folder, const Options& options) {
  const std::string path = ManifestPath(folder);
  UniqueFd lock;
  if (options.access == Access::kWrite) {
    if (::access(path.c_str(), F_OK) != 0) return FailErrno(path, errno);
    lock = UniqueFd(::open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock.valid()) return FailErrno(folder + "/lock", errno);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
      return Fail(ErrorCode::kOverloaded,
                  folder + ": another process writes to it: try again when it has ended");
  }
  const Manifest manifest = TRY_CONTEXT(ParseManifest(TRY(ReadTextFile(path))), path);
  if (!options.model_hash.empty() && manifest.model_hash != options.model_hash) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: made with the model of hash {}, not {}: embed the pictures again with this model",
                    folder, manifest.model_hash.empty() ? "(none named)" : manifest.model_hash,
                    options.model_hash));
  }
  std::unique_ptr<Index> index(new Index(folder, options, manifest));
  TRY_STATUS(index->Start(std::move(lock)));
  return index;
}

Status Index::Start(UniqueFd lock) {
  lock_ = std::move(lock);
  {
    MutexLock writing(write_mutex_);
    TRY_STATUS(ReloadUntilStill());
    if (options_.access == Access::kWrite) {
      const std::string path = LogPath(manifest_.logs.back());
      log_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
      if (!log_.valid()) return FailErrno(path, errno);
      bool torn = false;
      {
        MutexLock lock_rows(mutex_);
        torn = torn_bytes_ > 0;
      }
      if (torn) {
        TRY_STATUS(disk_.Truncate(log_, path, log_bytes_));
        TRY_STATUS(disk_.Sync(log_, path));
      }
      // A kill can leave files that the manifest does not name: new ones before it was written, old ones
      // after.
      std::set<std::string> named;
      for (const uint64_t number : manifest_.logs) named.insert(LogPath(number));
      for (const auto& entry : manifest_.segments) named.insert(SegmentPath(entry.number));
      std::error_code ignored;
      for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
        const std::string name = folder_ + "/" + entry.path().filename().string();
        const bool ours = name.ends_with(".log") || name.ends_with(".identities") || name.ends_with(".tmp");
        if (ours && !named.contains(name)) TRY_STATUS(disk_.Remove(name));
      }
    }
  }
  if (options_.background)
    maintainer_ = StartThread("identities", [this](const std::stop_token& stop) { Maintain(stop); });
  return {};
}

Status Index::ReloadUntilStill() {
  // A reader can meet the moment between the new manifest and the removal of the old files: it reads again.
  for (int tries = 0;; ++tries) {
    std::string text = TRY(ReadTextFile(ManifestPath(folder_)));
    const Manifest manifest = TRY_CONTEXT(ParseManifest(text), ManifestPath(folder_));
    Status status = Reload(manifest, text);
    if (status) return {};
    const bool moved =
        options_.access == Access::kRead && tries < 10 && TRY(ReadTextFile(ManifestPath(folder_))) != text;
    if (moved) continue;
    if (status.error().code == ErrorCode::kNotFound) status.error().code = ErrorCode::kCorrupt;
    return status;
  }
}

Status Index::Reload(const Manifest& manifest, std::string text) {
  if (manifest.dimension != dimension() || manifest.bits != layout_.bits || OwnerOf(manifest) != owner_)
    return Fail(ErrorCode::kCorrupt, folder_ + ": was replaced by another index: open it again");
  std::vector<SegmentUse> old;
  std::vector<uint64_t> old_numbers;
  {
    MutexLock lock(mutex_);
    old = segments_;
    old_numbers = segment_numbers_;
  }
  std::vector<SegmentUse> segments;
  std::vector<uint64_t> numbers;
  for (const auto& entry : manifest.segments) {
    const auto known = std::ranges::find(old_numbers, entry.number);
    std::shared_ptr<const Segment> segment;
    if (known != old_numbers.end()) {
      segment = old[static_cast<size_t>(known - old_numbers.begin())].segment;
    } else {
      segment = TRY(Segment::Open(SegmentPath(entry.number), {options_.rows, owner_}));
    }
    if (segment->layout().dimension != dimension() || segment->layout().bits != layout_.bits ||
        segment->rows() != entry.rows)
      return Fail(ErrorCode::kCorrupt,
                  SegmentPath(entry.number) + ": has another size than index.json says: restore the folder");
    segments.push_back({segment, entry.probes, entry.candidates});
    numbers.push_back(entry.number);
  }
  std::vector<Enrolment> rows;
  uint64_t torn = 0, bytes_of_last = 0, records_of_last = 0;
  for (const uint64_t number : manifest.logs) {
    if (torn > 0)
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("{}: the log before it ends within a record", LogPath(number)));
    const Bytes bytes = TRY(ReadFile(LogPath(number), kMaxLogBytes));
    LogContents contents = TRY_CONTEXT(ParseLog(bytes.span(), dimension(), number), LogPath(number));
    torn = contents.torn_bytes;
    bytes_of_last = contents.whole_bytes;
    records_of_last = contents.records.size();
    std::ranges::move(contents.records, std::back_inserter(rows));
  }
  const auto vectors = TRY(QuantiseAll(rows));
  manifest_ = manifest;
  manifest_text_ = std::move(text);
  log_bytes_ = bytes_of_last;
  log_records_ = records_of_last;
  MutexLock lock(mutex_);
  segments_ = std::move(segments);
  segment_numbers_ = std::move(numbers);
  tail_.clear();
  tail_rows_ = 0;
  open_block_ = nullptr;
  for (size_t i = 0; i < rows.size(); ++i) AddToTail(rows[i].name, vectors[i]);
  torn_bytes_ = torn;
  strangers_ = manifest.strangers;
  return {};
}

Status Index::Refresh() {
  CHECK(options_.access == Access::kRead);
  MutexLock writing(write_mutex_);
  const std::string text = TRY(ReadTextFile(ManifestPath(folder_)));
  if (text != manifest_text_) return ReloadUntilStill();
  const std::string path = LogPath(manifest_.logs.back());
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts{};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return ReloadUntilStill();
  const auto size = static_cast<uint64_t>(facts.st_size);
  if (size == log_bytes_) return {};
  if (size < log_bytes_ || size > kMaxLogBytes) return ReloadUntilStill();
  std::vector<std::byte> bytes(size - log_bytes_);
  const ssize_t got = ::pread(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(log_bytes_));
  if (got < 0) return FailErrno(path, errno);
  bytes.resize(static_cast<size_t>(got));
  const LogContents contents =
      TRY_CONTEXT(ParseLog(bytes, dimension(), manifest_.logs.back(), log_records_), path);
  const auto vectors = TRY(QuantiseAll(contents.records));
  log_bytes_ += contents.whole_bytes;
  log_records_ += contents.records.size();
  MutexLock lock(mutex_);
  for (size_t i = 0; i < vectors.size(); ++i) AddToTail(contents.records[i].name, vectors[i]);
  torn_bytes_ = contents.torn_bytes;
  return {};
}

void Index::AddToTail(std::string_view name, const QuantisedVector& vector) {
  if (open_block_ == nullptr || tail_.back().rows == TailBlock::kRows) {
    open_block_ = std::make_shared<TailBlock>(dimension());
    tail_.push_back({open_block_, 0});
  }
  open_block_->Set(tail_.back().rows++, name, vector);
  ++tail_rows_;
}

Result<std::vector<QuantisedVector>> Index::QuantiseAll(std::span<const Enrolment> rows) const {
  std::vector<QuantisedVector> vectors;
  vectors.reserve(rows.size());
  for (const Enrolment& row : rows) {
    TRY_STATUS(CheckName(row.name));
    if (row.vector.size() != dimension()) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("identity {}: {} values, the index has {}",
                                                           Quoted(row.name), row.vector.size(), dimension()));
    }
    vectors.push_back(TRY_CONTEXT(Quantise(row.vector, rotation_), "identity " + Quoted(row.name)));
  }
  return vectors;
}

IndexFacts Index::facts() const {
  MutexLock lock(mutex_);
  IndexFacts facts;
  facts.dimension = dimension();
  facts.bits = layout_.bits;
  facts.model_hash = model_hash_;
  uint64_t largest = 0;
  for (const SegmentUse& use : segments_) {
    const SegmentLayout& layout = use.segment->layout();
    facts.sealed += layout.rows;
    facts.resident_bytes += use.segment->resident_bytes();
    facts.file_bytes += layout.end;
    if (layout.rows <= largest) continue;
    largest = layout.rows;
    facts.lists = layout.lists;
    facts.probes = use.probes;
    facts.candidates = use.candidates;
  }
  facts.segments = segments_.size();
  facts.rows = facts.sealed + tail_rows_;
  facts.torn_bytes = torn_bytes_;
  return facts;
}

std::optional<Error> Index::background_error() const {
  MutexLock lock(mutex_);
  return background_error_;
}

Snapshot Index::TakeSnapshot() const {
  MutexLock lock(mutex_);
  return {segments_, tail_};
}

std::unique_ptr<RowFetcher> Index::TakeFetcher() const {
  {
    MutexLock lock(mutex_);
    if (!fetchers_.empty()) {
      auto fetcher = std::move(fetchers_.back());
      fetchers_.pop_back();
      return fetcher;
    }
  }
  return std::make_unique<RowFetcher>(RowFetcher::Options{.storage_delay = options_.storage_delay});
}

void Index::GiveFetcher(std::unique_ptr<RowFetcher> fetcher) const {
  MutexLock lock(mutex_);
  fetchers_.push_back(std::move(fetcher));
}

Result<std::vector<std::vector<Match>>> Index::Search(std::span<const std::vector<float>> queries,
                                                      const SearchOptions& options, SearchCost* cost) const {
  std::vector<SearchQuery> prepared;
  for (const std::vector<float>& query : queries) {
    if (query.size() != dimension()) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("a query of {} values, the index has {}", query.size(), dimension()));
    }
    prepared.push_back(MakeQuery(TRY_CONTEXT(Quantise(query, rotation_), "query"), layout_));
  }
  Snapshot snapshot = TakeSnapshot();
  for (SegmentUse& use : snapshot.segments) {
    if (options.probes > 0) use.probes = std::min<size_t>(options.probes, use.segment->layout().lists);
    if (options.candidates > 0) use.candidates = std::min<uint64_t>(options.candidates, use.segment->rows());
  }
  auto fetcher = TakeFetcher();
  auto matches = FindMatches(prepared, snapshot, {.best = options.best, .threshold = options.threshold},
                             team_, *fetcher, cost);
  GiveFetcher(std::move(fetcher));
  return matches;
}

Result<double> Index::Threshold(double false_alarms) const {
  const uint64_t rows = facts().rows;
  StrangerScores strangers;
  {
    MutexLock lock(mutex_);
    strangers = strangers_;
  }
  // A small index changes fast and is measured fast; a large one is measured when it is sealed.
  const bool changed = rows > 2 * strangers.enrolled || rows * 2 < strangers.enrolled;
  if (strangers.enrolled == 0 || (changed && rows < kQuicklyMeasured)) {
    auto fetcher = TakeFetcher();
    const auto measured =
        MeasureStrangers(TakeSnapshot(), layout_, kStrangerSearches / 5, 1, team_, *fetcher);
    GiveFetcher(std::move(fetcher));
    if (!measured) return std::unexpected(measured.error());
    if (*measured) strangers = **measured;
    MutexLock lock(mutex_);
    strangers_ = strangers;
  }
  return ThresholdFor(false_alarms, rows, strangers);
}

Status Index::ForEach(const std::function<Status(const RowView& row)>& visit) const {
  const Snapshot snapshot = TakeSnapshot();
  for (const SegmentUse& use : snapshot.segments) {
    for (uint64_t row = 0; row < use.segment->rows(); ++row) TRY_STATUS(visit(TRY(use.segment->Row(row))));
  }
  for (const TailPart& part : snapshot.tail) {
    for (uint64_t row = 0; row < part.rows; ++row) TRY_STATUS(visit(TRY(part.block->Row(row))));
  }
  return {};
}

std::vector<float> Index::VectorOf(const RowView& row) const {
  std::vector<float> vector(dimension());
  for (size_t i = 0; i < vector.size(); ++i) vector[i] = static_cast<float>(row.values[i]) * row.scale;
  rotation_.Undo(vector);
  return vector;
}

Status Index::Verify(const std::stop_token& stop) const {
  // Opening checked the manifest, the logs and the resident sections as they were then: all is read again.
  const Manifest manifest =
      TRY_CONTEXT(ParseManifest(TRY(ReadTextFile(ManifestPath(folder_)))), ManifestPath(folder_));
  for (const auto& entry : manifest.segments) {
    const auto segment = TRY(Segment::Open(SegmentPath(entry.number), {RowAccess::kMap, owner_}));
    if (segment->rows() != entry.rows)
      return Fail(ErrorCode::kCorrupt, SegmentPath(entry.number) + ": has another size than index.json says");
    TRY_STATUS(segment->VerifyRows(stop));
  }
  for (const uint64_t number : manifest.logs) {
    const Bytes bytes = TRY(ReadFile(LogPath(number), kMaxLogBytes));
    const auto contents = TRY_CONTEXT(ParseLog(bytes.span(), dimension(), number), LogPath(number));
    for (const Enrolment& row : contents.records) {
      TRY_STATUS(CheckName(row.name));
      if (!row.vector.empty())
        TRY_CONTEXT(Quantise(row.vector, rotation_), LogPath(number) + ": identity " + Quoted(row.name));
    }
  }
  return {};
}

void Index::Maintain(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Status status;
    if (options_.access == Access::kRead) {
      {
        MutexLock lock(mutex_);
        const Instant until = clock_.Now() + kFollowPeriod;
        while (!stop.stop_requested() && changed_.WaitUntil(mutex_, until)) {
        }
      }
      if (stop.stop_requested()) return;
      status = Refresh();
    } else {
      {
        MutexLock lock(mutex_);
        while (!stop.stop_requested() && tail_rows_ < options_.seal_rows) changed_.Wait(mutex_);
      }
      if (stop.stop_requested()) return;
      status = Seal(SealScope::kTail);
      if (!status) {
        MutexLock lock(mutex_);  // a full disk is not tried again at once
        const Instant until = clock_.Now() + 10s;
        while (!stop.stop_requested() && changed_.WaitUntil(mutex_, until)) {
        }
      }
    }
    MutexLock lock(mutex_);
    background_error_ = status ? std::nullopt : std::optional(status.error());
  }
}

}  // namespace weir::identity
