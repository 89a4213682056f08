// Changes of an index: enrolment, and everything that writes sealed files. The rest is in index.cc.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/seed.h"
#include "base/text.h"
#include "identity/calibrate.h"
#include "identity/index.h"

namespace weir::identity {
namespace {

// Rows of a build, quantised, in a file without a name that goes with its descriptor.
class Spool final : public RowSource {
 public:
  static Result<Spool> Open(const std::string& path, size_t dimension) {
    Spool spool;
    spool.path_ = path;
    spool.dimension_ = dimension;
    spool.fd_ = TRY(CreatePrivateFile(path));
    if (::unlink(path.c_str()) != 0) return FailErrno(path, errno);
    return spool;
  }
  Spool(Spool&& other) noexcept
      : path_(std::move(other.path_)),
        dimension_(other.dimension_),
        fd_(std::move(other.fd_)),
        names_(std::move(other.names_)),
        ends_(std::move(other.ends_)),
        mapping_(std::exchange(other.mapping_, nullptr)),
        mapped_bytes_(other.mapped_bytes_) {}
  ~Spool() override {
    if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
  }

  Status Add(Disk& disk, std::span<const Enrolment> rows, std::span<const QuantisedVector> vectors) {
    std::vector<std::byte> bytes(rows.size() * stride());
    for (size_t i = 0; i < rows.size(); ++i) {
      std::byte* const to = bytes.data() + i * stride();
      std::memcpy(to, vectors[i].values.data(), dimension_);
      std::memcpy(to + dimension_, &vectors[i].scale, sizeof(float));
      names_ += rows[i].name;
    }
    TRY_STATUS(disk.Write(fd_, path_, bytes, ends_.size() * stride()));
    for (const Enrolment& row : rows) ends_.push_back((ends_.empty() ? 0 : ends_.back()) + row.name.size());
    return {};
  }
  Status Map() {
    mapped_bytes_ = ends_.size() * stride();
    if (mapped_bytes_ == 0) return {};
    void* const mapping = ::mmap(nullptr, mapped_bytes_, PROT_READ, MAP_SHARED, fd_.get(), 0);
    if (mapping == MAP_FAILED) return FailErrno(path_, errno);
    mapping_ = mapping;
    return {};
  }
  uint64_t rows() const override { return ends_.size(); }
  Result<RowView> Row(uint64_t row) const override {
    const auto* record = static_cast<const std::byte*>(mapping_) + row * stride();
    RowView view;
    view.values = reinterpret_cast<const int8_t*>(record);
    std::memcpy(&view.scale, record + dimension_, sizeof(float));
    const uint64_t begin = row == 0 ? 0 : ends_[row - 1];
    view.name = std::string_view(names_).substr(begin, ends_[row] - begin);
    return view;
  }

 private:
  Spool() = default;
  size_t stride() const { return (dimension_ + 4 + 7) / 8 * 8; }
  std::string path_;
  size_t dimension_ = 0;
  UniqueFd fd_;
  std::string names_;
  std::vector<uint64_t> ends_;
  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
};

// A sample of rows, for training.
Result<VectorSample> Sample(const std::vector<const RowSource*>& sources, std::span<const RowId> rows,
                            size_t count, size_t dimension) {
  VectorSample sample;
  sample.dimension = dimension;
  Random random(rows.size());
  for (size_t i = 0; i < count; ++i) {
    // One row of each of `count` equal parts.
    const uint64_t begin = rows.size() * i / count, end = rows.size() * (i + 1) / count;
    const auto at =
        static_cast<size_t>(random.Integer(static_cast<int64_t>(begin), static_cast<int64_t>(end) - 1));
    const RowView row = TRY(sources[rows[at].source]->Row(rows[at].row));
    sample.values.insert(sample.values.end(), row.values, row.values + dimension);
    sample.scales.push_back(row.scale);
  }
  return sample;
}

}  // namespace

Status Index::CheckWritable() const {
  if (options_.access != Access::kWrite)
    return Fail(ErrorCode::kInvalidArgument, folder_ + ": opened for reading only");
  if (log_failed_)
    return Fail(ErrorCode::kIo,
                folder_ + ": an earlier write failed and could not be undone: open the index again");
  return {};
}

Status Index::Enrol(std::span<const Enrolment> rows) {
  const auto vectors = TRY(QuantiseAll(rows));
  MutexLock writing(write_mutex_);
  TRY_STATUS(CheckWritable());
  const uint64_t number = manifest_.logs.back();
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) text += FormatLogRecord(rows[i], number, log_records_ + i);
  const std::string path = LogPath(number);
  Status status = disk_.Write(log_, path, std::as_bytes(std::span(text)), log_bytes_);
  if (status) status = disk_.Sync(log_, path);
  if (!status) {
    // The rows are not acknowledged, so they may not come back after a restart either.
    log_failed_ = !disk_.Truncate(log_, path, log_bytes_) || !disk_.Sync(log_, path);
    return status;
  }
  log_records_ += rows.size();
  log_bytes_ += text.size();
  MutexLock lock(mutex_);
  for (size_t i = 0; i < rows.size(); ++i) AddToTail(rows[i].name, vectors[i]);
  if (options_.background && tail_rows_ >= options_.seal_rows) changed_.NotifyAll();
  return {};
}

Status Index::WriteManifest(const Manifest& manifest) {
  return WritePrivateFile(disk_, ManifestPath(folder_), FormatManifest(manifest));
}

// After an error either manifest may stand on the disk. Both name every log that holds acknowledged rows, the
// new one also an empty log, so enrolments go on into the old log and no file is removed.
Result<size_t> Index::RotateLog() {
  MutexLock writing(write_mutex_);
  TRY_STATUS(CheckWritable());
  const uint64_t number = manifest_.next++;
  UniqueFd log = TRY(CreatePrivateFile(LogPath(number)));
  TRY_STATUS(disk_.SyncFolder(folder_));
  Manifest manifest = manifest_;
  manifest.logs.push_back(number);
  TRY_STATUS(WriteManifest(manifest));
  manifest_ = std::move(manifest);
  log_ = std::move(log);
  log_records_ = log_bytes_ = 0;
  MutexLock lock(mutex_);
  open_block_ = nullptr;
  return tail_.size();
}

Result<std::optional<Index::NewSegment>> Index::WriteRows(const std::vector<const RowSource*>& sources,
                                                          std::vector<RowId> rows,
                                                          const std::stop_token& stop) {
  if (rows.empty()) return std::nullopt;
  NewSegment made;
  made.entry.rows = rows.size();
  double mate_cosine = 0;
  {
    MutexLock writing(write_mutex_);
    made.entry.number = manifest_.next++;
    mate_cosine = manifest_.mate_cosine;
  }
  SegmentPlan plan{layout_.bits, owner_, Lists::One(dimension()), sources, std::move(rows)};
  const size_t wanted = ListsFor(plan.rows.size());
  if (wanted > 1) {
    // Lists that were trained on a quarter of the rows or more serve still.
    const Segment* largest = nullptr;
    for (const RowSource* source : sources) {
      const auto* segment = dynamic_cast<const Segment*>(source);
      if (segment != nullptr && (largest == nullptr || segment->rows() > largest->rows())) largest = segment;
    }
    if (largest != nullptr && largest->layout().lists * 3 >= wanted) {
      plan.lists = largest->lists();
    } else {
      const size_t count = std::min<size_t>(plan.rows.size(), 24 * wanted);
      const VectorSample sample = TRY(Sample(sources, plan.rows, count, dimension()));
      plan.lists = TrainLists(sample, wanted, 1, build_team_);
    }
    made.entry.trained_rows = plan.rows.size();
  }
  if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "interrupted");
  const std::string path = SegmentPath(made.entry.number);
  TRY_STATUS(WriteSegment(path, plan, disk_, build_team_));
  auto segment = TRY(Segment::Open(path, {options_.rows, owner_}));
  CalibrationOptions calibration;
  calibration.mate_cosine = mate_cosine;
  if (segment->layout().lists == 1) calibration.mates = 300;
  made.use = TRY(CalibrateSegment(std::move(segment), calibration, build_team_, stop));
  made.entry.probes = made.use.probes;
  made.entry.candidates = made.use.candidates;
  return made;
}

// After an error either manifest may stand on the disk, so no file of either is removed, the object stays on
// the old files, and enrolments go into the log that both name.
Status Index::Commit(Change change, const std::stop_token& stop) {
  // Measured before the files change, so that nothing but renaming is left to do.
  Snapshot after = TakeSnapshot();
  std::vector<uint64_t> numbers;
  {
    MutexLock lock(mutex_);
    numbers = segment_numbers_;
  }
  for (size_t i = numbers.size(); i-- > 0;) {
    if (std::ranges::find(change.removed, numbers[i]) == change.removed.end()) continue;
    numbers.erase(numbers.begin() + static_cast<ptrdiff_t>(i));
    after.segments.erase(after.segments.begin() + static_cast<ptrdiff_t>(i));
  }
  if (change.added) {
    numbers.push_back(change.added->entry.number);
    after.segments.push_back(change.added->use);
  }
  after.tail.erase(after.tail.begin(), after.tail.begin() + static_cast<ptrdiff_t>(change.frozen));
  uint64_t rows = 0;
  for (const SegmentUse& use : after.segments) rows += use.segment->rows();
  StrangerScores strangers;
  {
    MutexLock lock(mutex_);
    strangers = strangers_;
  }
  if (rows >= 100 &&
      (strangers.enrolled == 0 || rows > 2 * strangers.enrolled || rows * 2 < strangers.enrolled)) {
    RowFetcher fetcher({});
    bool scan = false;
    for (const SegmentUse& use : after.segments)
      scan = scan || (use.probes > 1 && use.probes == use.segment->layout().lists);
    auto measured = TRY(MeasureStrangers(after, layout_, scan ? kStrangerSearches / 5 : kStrangerSearches, 1,
                                         build_team_, fetcher, stop));
    if (measured) strangers = *std::move(measured);
  }
  std::vector<std::string> old;
  {
    MutexLock writing(write_mutex_);
    TRY_STATUS(CheckWritable());
    Manifest manifest = manifest_;
    std::erase_if(manifest.segments, [&](const Manifest::SegmentEntry& entry) {
      return std::ranges::find(change.removed, entry.number) != change.removed.end();
    });
    if (change.added) manifest.segments.push_back(change.added->entry);
    if (change.logs_are_sealed) {
      for (size_t i = 0; i + 1 < manifest.logs.size(); ++i) old.push_back(LogPath(manifest.logs[i]));
      manifest.logs.erase(manifest.logs.begin(), manifest.logs.end() - 1);
    }
    manifest.strangers = strangers;
    TRY_STATUS(WriteManifest(manifest));
    manifest_ = std::move(manifest);
    MutexLock lock(mutex_);
    segments_ = std::move(after.segments);
    segment_numbers_ = std::move(numbers);
    for (size_t i = 0; i < change.frozen; ++i) tail_rows_ -= tail_[i].rows;
    tail_.erase(tail_.begin(), tail_.begin() + static_cast<ptrdiff_t>(change.frozen));
    if (tail_.empty()) open_block_ = nullptr;
    strangers_ = std::move(strangers);
  }
  for (const uint64_t number : change.removed) old.push_back(SegmentPath(number));
  Status removed;
  for (const std::string& path : old) {
    if (Status status = disk_.Remove(path); !status) removed = status;
  }
  if (Status status = disk_.SyncFolder(folder_); !status) removed = status;
  return removed;
}

Status Index::Seal(SealScope scope) {
  MutexLock maintaining(maintenance_mutex_);
  {
    MutexLock lock(mutex_);
    const bool merges = scope == SealScope::kAll && segments_.size() > 1;
    if (options_.access == Access::kWrite && tail_rows_ == 0 && !merges) return {};
  }
  const size_t frozen = TRY(RotateLog());
  const Snapshot now = TakeSnapshot();
  std::vector<uint64_t> numbers;
  {
    MutexLock lock(mutex_);
    numbers = segment_numbers_;
  }
  Change change;
  change.frozen = frozen;
  change.logs_are_sealed = true;
  std::vector<const RowSource*> sources;
  std::vector<RowId> rows;
  const auto take = [&](const RowSource& source, uint64_t count) {
    for (uint64_t row = 0; row < count; ++row) rows.push_back({sources.size(), row});
    sources.push_back(&source);
  };
  for (size_t i = 0; i < frozen; ++i) take(*now.tail[i].block, now.tail[i].rows);
  // Files of at most twice the rows so far join them, so that their number grows with the logarithm of the
  // rows.
  std::vector<size_t> order(now.segments.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return now.segments[i].segment->rows(); });
  for (const size_t i : order) {
    const Segment& segment = *now.segments[i].segment;
    if (scope == SealScope::kTail && segment.rows() > 2 * rows.size()) break;
    take(segment, segment.rows());
    change.removed.push_back(numbers[i]);
  }
  change.added = TRY(WriteRows(sources, std::move(rows), {}));
  return Commit(std::move(change), {});
}

Result<uint64_t> Index::Delete(std::span<const std::string> names) {
  MutexLock maintaining(maintenance_mutex_);
  const size_t frozen = TRY(RotateLog());
  const Snapshot now = TakeSnapshot();
  std::vector<uint64_t> numbers;
  {
    MutexLock lock(mutex_);
    numbers = segment_numbers_;
  }
  const std::set<std::string_view> dead(names.begin(), names.end());
  std::set<std::string_view> found;
  uint64_t removed = 0;
  Change change;
  change.frozen = frozen;
  change.logs_are_sealed = true;
  std::vector<const RowSource*> sources;
  std::vector<RowId> rows;
  const auto take = [&](const RowSource& source, uint64_t count) -> Result<bool> {
    const size_t before = rows.size();
    for (uint64_t row = 0; row < count; ++row) {
      const RowView view = TRY(source.Row(row));
      const auto name = dead.find(view.name);
      if (name != dead.end()) {
        found.insert(*name);
      } else {
        rows.push_back({sources.size(), row});
      }
    }
    const bool hit = rows.size() - before < count;
    if (hit) removed += count - (rows.size() - before);
    return hit;
  };
  for (size_t i = 0; i < frozen; ++i) {
    TRY(take(*now.tail[i].block, now.tail[i].rows));
    sources.push_back(now.tail[i].block.get());
  }
  for (size_t i = 0; i < now.segments.size(); ++i) {
    const size_t before = rows.size();
    if (TRY(take(*now.segments[i].segment, now.segments[i].segment->rows()))) {
      sources.push_back(now.segments[i].segment.get());
      change.removed.push_back(numbers[i]);
    } else {
      rows.resize(before);  // a file without these names stays
    }
  }
  for (const std::string_view name : dead) {
    if (!found.contains(name))
      return Fail(ErrorCode::kNotFound, fmt::format("identity {}: not in {}", Quoted(name), folder_));
  }
  change.added = TRY(WriteRows(sources, std::move(rows), {}));
  TRY_STATUS(Commit(std::move(change), {}));
  return removed;
}

Result<uint64_t> Index::Fill(VectorSource& source, const std::function<void(uint64_t)>& progress,
                             const std::stop_token& stop) {
  MutexLock maintaining(maintenance_mutex_);
  uint64_t number = 0;
  {
    MutexLock writing(write_mutex_);
    TRY_STATUS(CheckWritable());
    number = manifest_.next++;
  }
  Spool spool = TRY(Spool::Open(fmt::format("{}/{}.spool.tmp", folder_, number), dimension()));
  constexpr size_t kBatch = 8192;
  for (;;) {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "interrupted: nothing was added");
    const std::vector<Enrolment> rows = TRY(source.Next(kBatch));
    if (rows.empty()) break;
    std::vector<QuantisedVector> vectors(rows.size());
    Mutex mutex;
    Status failed;
    build_team_.ForEachPart(rows.size(), 256, [&](size_t begin, size_t end) {
      auto part = QuantiseAll(std::span(rows).subspan(begin, end - begin));
      if (part) {
        std::ranges::move(*part, vectors.begin() + static_cast<ptrdiff_t>(begin));
      } else {
        MutexLock lock(mutex);
        failed = std::unexpected(part.error());
      }
    });
    TRY_STATUS(failed);
    TRY_STATUS(spool.Add(disk_, rows, vectors));
    if (progress) progress(spool.rows());
  }
  TRY_STATUS(spool.Map());
  std::vector<RowId> rows;
  rows.reserve(spool.rows());
  for (uint64_t row = 0; row < spool.rows(); ++row) rows.push_back({0, row});
  Change change;
  change.added = TRY(WriteRows({&spool}, std::move(rows), stop));
  if (change.added) TRY_STATUS(Commit(std::move(change), stop));
  return spool.rows();
}

Result<uint64_t> ExportVectors(const Index& index, const std::string& path, const std::stop_token& stop) {
  TRY_STATUS(weir::CheckWritable(path));
  Disk disk;
  const std::string beside = TemporaryBeside(path);
  const UniqueFd fd = TRY(CreatePrivateFile(beside));
  std::string text;
  uint64_t rows = 0, bytes = 0;
  const auto flush = [&]() -> Status {
    TRY_STATUS(disk.Write(fd, path, std::as_bytes(std::span(text)), bytes));
    bytes += text.size();
    text.clear();
    return {};
  };
  Status status = index.ForEach([&](const RowView& row) -> Status {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "interrupted");
    text += FormatVectorLine({std::string(row.name), index.VectorOf(row)});
    ++rows;
    return text.size() > (1 << 20) ? flush() : Status();
  });
  if (status) status = flush();
  if (status) status = disk.Sync(fd, path);
  if (status) status = disk.Rename(beside, path);
  if (!status) {
    ::unlink(beside.c_str());
    return std::unexpected(status.error());
  }
  return rows;
}

}  // namespace weir::identity
