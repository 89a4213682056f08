#include "identity/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/mutex.h"
#include "base/text.h"
#include "identity/manifest.h"

namespace weir::identity {
namespace {

constexpr uint64_t kPage = 4096, kBlock = uint64_t{1} << 20, kMostRows = uint64_t{1} << 40;
constexpr std::string_view kMagic = "WEIRID", kVersion = "02";

struct Header {
  char magic[6], version[2];
  uint32_t dimension, bits;
  uint64_t rows, slots;
  uint32_t lists, name_bytes;
  uint64_t owner;
  uint64_t table_checksum;  // of the checksums of the resident sections
};
// The header's page: its last 8 bytes are the checksum of those before them.
using Page = std::array<std::byte, kPage>;

uint64_t Checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

uint64_t Padded(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

uint64_t BlocksOf(uint64_t bytes) { return (bytes + kBlock - 1) / kBlock; }

std::unexpected<Error> Corrupt(std::string what) {
  return Fail(ErrorCode::kCorrupt, std::move(what) + ": restore the folder from a copy, or build it again");
}

// The row number is added, so that a record in the place of another never passes.
uint32_t RecordChecksum(const std::byte* record, uint64_t number, const SegmentLayout& layout) {
  return static_cast<uint32_t>(Checksum({record, layout.stride - size_t{4}}) + number);
}

void WriteRecord(const RowView& row, uint64_t number, const SegmentLayout& layout, std::byte* record) {
  std::memset(record, 0, layout.stride);
  std::memcpy(record, row.values, layout.dimension);
  std::memcpy(record + layout.dimension, &row.scale, sizeof(row.scale));
  const auto length = static_cast<uint8_t>(row.name.size());
  std::memcpy(record + layout.dimension + 4, &length, 1);
  std::memcpy(record + layout.dimension + 5, row.name.data(), row.name.size());
  const uint32_t check = RecordChecksum(record, number, layout);
  std::memcpy(record + layout.stride - 4, &check, sizeof(check));
}

}  // namespace

SegmentLayout SegmentLayout::Of(size_t dimension, int bits, uint64_t rows, uint32_t lists, uint64_t slots,
                                uint32_t name_bytes) {
  SegmentLayout at;
  at.dimension = dimension;
  at.bits = bits;
  at.rows = rows;
  at.lists = lists;
  at.slots = slots;
  at.name_bytes = name_bytes;
  at.stride = static_cast<uint32_t>(Padded(dimension + 4 + 1 + name_bytes + 4, 8));
  at.begins = kPage;
  at.centres = Padded(at.begins + (lists + uint64_t{1}) * sizeof(uint64_t), 64);
  at.scales = Padded(at.centres + lists * uint64_t{dimension}, 64);
  at.factors = Padded(at.scales + lists * sizeof(float), 64);
  at.codes = Padded(at.factors + slots * sizeof(float), 64);
  at.records = Padded(at.codes + slots * at.code().columns(), kPage);
  at.checksums = at.records + rows * at.stride;
  at.end = at.checksums + BlocksOf(at.resident_bytes()) * sizeof(uint64_t);
  return at;
}

Result<ResidentMemory> ResidentMemory::Allocate(size_t size) {
  ResidentMemory memory;
  if (size == 0) return memory;
  void* const data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return Fail(ErrorCode::kOverloaded,
                fmt::format("{} bytes of memory for an index: {}", size, "not there"));
  ::madvise(data, size, MADV_HUGEPAGE);
  ::madvise(data, size, MADV_DONTDUMP);  // embeddings do not belong in a core file
  memory.data_ = static_cast<std::byte*>(data);
  memory.size_ = size;
  return memory;
}

ResidentMemory::ResidentMemory(ResidentMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

ResidentMemory& ResidentMemory::operator=(ResidentMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

ResidentMemory::~ResidentMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Result<RowView> ParseRecord(const std::byte* record, uint64_t number, const SegmentLayout& layout) {
  uint32_t check;
  std::memcpy(&check, record + layout.stride - 4, sizeof(check));
  if (check != RecordChecksum(record, number, layout))
    return Corrupt("its checksum is wrong, or the record is another row's");
  RowView row;
  row.values = reinterpret_cast<const int8_t*>(record);
  std::memcpy(&row.scale, record + layout.dimension, sizeof(row.scale));
  if (!(row.scale > 0) || !std::isfinite(row.scale))
    return Corrupt("its scale is no number: the vector was too large when it was enrolled; enrol it again");
  const auto length = static_cast<uint8_t>(record[layout.dimension + 4]);
  if (length == 0 || length > layout.name_bytes) return Corrupt("a row has no name of the length it says");
  row.name = {reinterpret_cast<const char*>(record + layout.dimension + 5), length};
  return row;
}

Segment::~Segment() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
}

const uint64_t* Segment::begins() const { return reinterpret_cast<const uint64_t*>(resident_.data()); }

Status Segment::Load(const Reader& read, uint64_t file_bytes, uint64_t owner) {
  Page page;
  if (file_bytes < kPage) return Corrupt("shorter than its header");
  TRY_STATUS(read(0, page));
  Header header;
  std::memcpy(&header, page.data(), sizeof(header));
  if (std::string_view(header.magic, sizeof(header.magic)) != kMagic)
    return Corrupt("not a file of identities");
  uint64_t check;
  std::memcpy(&check, page.data() + kPage - 8, sizeof(check));
  if (check != Checksum(std::span(page).first(kPage - 8)))
    return Corrupt("the checksum of the header is wrong");
  if (const std::string_view version(header.version, sizeof(header.version)); version != kVersion)
    return OtherVersion(version, kVersion);
  const bool known_bits = header.bits == 1 || header.bits == 2 || header.bits == 4;
  if (header.dimension == 0 || header.dimension > kMaxDimension || !known_bits || header.lists == 0 ||
      header.rows > kMostRows || header.name_bytes > kMaxName || header.slots % kGroup != 0 ||
      header.slots > header.rows + uint64_t{header.lists} * kGroup || header.slots < header.rows)
    return Corrupt("the header has sizes out of range");
  if (header.owner != owner) return Corrupt("the file belongs to another index");
  layout_ = SegmentLayout::Of(header.dimension, static_cast<int>(header.bits), header.rows, header.lists,
                              header.slots, header.name_bytes);
  if (layout_.end != file_bytes)
    return Corrupt(fmt::format("has {} bytes, its header says {}", file_bytes, layout_.end));
  resident_ = TRY(ResidentMemory::Allocate(layout_.resident_bytes()));
  TRY_STATUS(read(layout_.begins, resident_.span()));
  std::vector<uint64_t> table(BlocksOf(layout_.resident_bytes()));
  TRY_STATUS(read(layout_.checksums, std::as_writable_bytes(std::span(table))));
  if (Checksum(std::as_bytes(std::span(table))) != header.table_checksum)
    return Corrupt("the table of checksums is damaged");
  for (uint64_t block = 0; block < table.size(); ++block) {
    const uint64_t begin = block * kBlock, size = std::min(kBlock, layout_.resident_bytes() - begin);
    if (Checksum(std::as_bytes(resident_.span().subspan(begin, size))) != table[block])
      return Corrupt(fmt::format("the checksum of the block at byte {} is wrong", layout_.begins + begin));
  }
  uint64_t slot = 0;
  for (size_t list = 0; list < layout_.lists; ++list) {
    const uint64_t begin = begins()[list], end = begins()[list + 1];
    if (begin > end || end > layout_.rows || (list == 0 && begin != 0))
      return Corrupt("the lists do not divide the rows");
    slot_begins_.push_back(slot);
    slot += Padded(end - begin, kGroup);
  }
  if (begins()[layout_.lists] != layout_.rows || slot != layout_.slots)
    return Corrupt("the lists do not divide the rows");
  auto lists = std::make_shared<Lists>();
  lists->dimension = layout_.dimension;
  const auto* centres = reinterpret_cast<const int8_t*>(resident_.data() + layout_.centres - layout_.begins);
  lists->centres.assign(centres, centres + layout_.lists * layout_.dimension);
  if (std::ranges::count(lists->centres, int8_t{-128}) > 0) return Corrupt("a centre is out of range");
  const auto* scales = reinterpret_cast<const float*>(resident_.data() + layout_.scales - layout_.begins);
  lists->scales.assign(scales, scales + layout_.lists);
  lists_ = std::move(lists);
  return {};
}

Result<std::shared_ptr<const Segment>> Segment::Open(const std::string& path, const Options& options) {
  std::shared_ptr<Segment> segment(new Segment);
  segment->path_ = path;
  segment->access_ = options.access;
  segment->fd_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts{};
  if (!segment->fd_.valid() || ::fstat(segment->fd_.get(), &facts) != 0) return FailErrno(path, errno);
  if (!S_ISREG(facts.st_mode)) return Context(path, Error{ErrorCode::kCorrupt, "not a file of identities"});
  const auto size = static_cast<uint64_t>(facts.st_size);
  const Reader read = [&](uint64_t offset, std::span<std::byte> to) -> Status {
    while (!to.empty()) {
      const ssize_t got = ::pread(segment->fd_.get(), to.data(), to.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FailErrno("read", errno);
      if (got == 0) return Corrupt("shrank while it was read");
      offset += static_cast<uint64_t>(got);
      to = to.subspan(static_cast<size_t>(got));
    }
    return {};
  };
  if (const Status loaded = segment->Load(read, size, options.owner); !loaded)
    return Context(path, loaded.error());
  const SegmentLayout& layout = segment->layout_;
  const uint64_t bytes = layout.checksums - layout.records;
  if (options.access == RowAccess::kMemory) {
    segment->row_memory_ = TRY(ResidentMemory::Allocate(bytes));
    if (const Status all = read(layout.records, segment->row_memory_.span()); !all)
      return Context(path, all.error());
    segment->records_ = segment->row_memory_.data();
    return segment;
  }
  if (options.access == RowAccess::kDirect) {
    segment->direct_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
    if (!segment->direct_.valid() && errno == EINVAL)
      return Fail(ErrorCode::kUnsupported, path + ": this file system has no direct reads: use --access map");
    if (!segment->direct_.valid()) return FailErrno(path, errno);
  }
  if (bytes == 0) return segment;
  void* const mapping =
      ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, segment->fd_.get(), static_cast<off_t>(layout.records));
  if (mapping == MAP_FAILED) return FailErrno(path, errno);
  segment->mapping_ = mapping;
  segment->mapped_bytes_ = bytes;
  segment->records_ = static_cast<const std::byte*>(mapping);
  ::madvise(mapping, bytes, MADV_RANDOM);  // rows of a look-up lie apart
  return segment;
}

Result<std::shared_ptr<const Segment>> Segment::FromBytes(std::span<const std::byte> bytes, uint64_t owner) {
  std::shared_ptr<Segment> segment(new Segment);
  segment->access_ = RowAccess::kMemory;
  const Reader read = [&](uint64_t offset, std::span<std::byte> to) -> Status {
    if (offset > bytes.size() || bytes.size() - offset < to.size()) return Corrupt("cut off");
    if (!to.empty()) std::memcpy(to.data(), bytes.data() + offset, to.size());
    return {};
  };
  TRY_STATUS(segment->Load(read, bytes.size(), owner));
  const SegmentLayout& layout = segment->layout_;
  segment->row_memory_ = TRY(ResidentMemory::Allocate(layout.checksums - layout.records));
  TRY_STATUS(read(layout.records, segment->row_memory_.span()));
  segment->records_ = segment->row_memory_.data();
  return segment;
}

ScanJob Segment::Job(size_t list, uint32_t segment) const {
  const uint64_t slot = slot_begins_[list];
  ScanJob job;
  job.columns = layout_.code().columns();
  job.codes = reinterpret_cast<const uint8_t*>(resident_.data() + layout_.codes - layout_.begins) +
              slot * job.columns;
  job.factors = reinterpret_cast<const float*>(resident_.data() + layout_.factors - layout_.begins) + slot;
  job.rows = begins()[list + 1] - begins()[list];
  job.first_row = begins()[list];
  job.segment = segment;
  return job;
}

Result<RowView> Segment::Row(uint64_t row) const {
  CHECK(row < layout_.rows);
  return TRY_CONTEXT(ParseRecord(record(row), row, layout_), fmt::format("{}: row {}", path_, row));
}

std::optional<uint32_t> Segment::ListOf(uint64_t row, const void* lists) const {
  if (lists != lists_.get()) return std::nullopt;
  const uint64_t* const first = begins();
  return static_cast<uint32_t>(std::upper_bound(first, first + layout_.lists + 1, row) - first - 1);
}

// A checksum holds for numbers that are none as well.
Status Segment::VerifyNumbers() const {
  const auto* const resident = resident_.data() - layout_.begins;
  const std::span scales(reinterpret_cast<const float*>(resident + layout_.scales), layout_.lists);
  const std::span factors(reinterpret_cast<const float*>(resident + layout_.factors), layout_.slots);
  const auto is_number = [](float value) { return std::isfinite(value); };
  if (std::ranges::all_of(scales, is_number) && std::ranges::all_of(factors, is_number)) return {};
  return Fail(ErrorCode::kCorrupt, path_ + ": a list has a number that is none: build the index again");
}

Status Segment::VerifyRows(const std::stop_token& stop) const {
  TRY_STATUS(VerifyNumbers());
  if (mapping_ != nullptr) ::madvise(mapping_, mapped_bytes_, MADV_SEQUENTIAL);
  for (uint64_t row = 0; row < layout_.rows; ++row) {
    if (row % 4096 == 0 && stop.stop_requested()) return Fail(ErrorCode::kCancelled, "interrupted");
    TRY(Row(row));
  }
  if (mapping_ != nullptr) ::madvise(mapping_, mapped_bytes_, MADV_RANDOM);
  return {};
}

Status WriteSegment(const std::string& path, const SegmentPlan& plan, Disk& disk, Team& team) {
  const Lists& lists = *plan.lists;
  const uint64_t rows = plan.rows.size();
  if (rows >= UINT32_MAX)
    return Fail(ErrorCode::kUnsupported, "one file holds fewer than 4,294,967,295 rows");
  // The list of each row and the longest name.
  const ListFinder finder(plan.lists, team);
  std::vector<uint32_t> list_of(rows);
  std::atomic<uint32_t> longest{0};
  Mutex mutex;
  Status failed;
  const auto fail = [&](const Error& error) {
    MutexLock lock(mutex);
    failed = std::unexpected(error);
  };
  team.ForEachPart(rows, 1024, [&](size_t begin, size_t end) {
    uint32_t most = 0;
    for (size_t i = begin; i < end; ++i) {
      const RowSource& source = *plan.sources[plan.rows[i].source];
      const auto row = source.Row(plan.rows[i].row);
      if (!row) return fail(row.error());
      most = std::max(most, static_cast<uint32_t>(row->name.size()));
      const auto known = source.ListOf(plan.rows[i].row, plan.lists.get());
      list_of[i] = known ? *known : finder.Nearest(row->values);
    }
    uint32_t seen = longest.load();
    while (seen < most && !longest.compare_exchange_weak(seen, most)) {
    }
  });
  TRY_STATUS(failed);
  // Rows in the order of their lists.
  std::vector<uint64_t> begins(lists.size() + 1), slots(lists.size() + 1);
  for (const uint32_t list : list_of) ++begins[list + 1];
  for (size_t list = 0; list < lists.size(); ++list) {
    slots[list + 1] = slots[list] + Padded(begins[list + 1], kGroup);
    begins[list + 1] += begins[list];
  }
  std::vector<uint32_t> order(rows);
  {
    std::vector<uint64_t> next(begins.begin(), begins.end() - 1);
    for (uint64_t i = 0; i < rows; ++i) order[next[list_of[i]]++] = static_cast<uint32_t>(i);
  }
  const SegmentLayout layout = SegmentLayout::Of(lists.dimension, plan.bits, rows,
                                                 static_cast<uint32_t>(lists.size()), slots.back(), longest);
  ResidentMemory resident = TRY(ResidentMemory::Allocate(layout.resident_bytes()));
  const auto section = [&](uint64_t at) { return resident.data() + (at - layout.begins); };
  std::memcpy(section(layout.begins), begins.data(), begins.size() * sizeof(uint64_t));
  std::memcpy(section(layout.centres), lists.centres.data(), lists.centres.size());
  std::memcpy(section(layout.scales), lists.scales.data(), lists.scales.size() * sizeof(float));

  const std::string beside = TemporaryBeside(path);
  UniqueFd fd = TRY(CreatePrivateFile(beside));
  struct Unlinker {
    std::string path;
    ~Unlinker() {
      if (!path.empty()) ::unlink(path.c_str());
    }
  } unlinker{beside};
  // Codes and records, some lists at a time.
  const CodeLayout code = layout.code();
  team.ForEachPart(lists.size(), 4, [&](size_t first, size_t last) {
    std::vector<std::byte> records;
    std::vector<float> residual(layout.dimension);
    std::vector<uint8_t> bytes(code.columns());
    uint64_t offset = layout.records + begins[first] * layout.stride;
    const auto flush = [&] {
      if (records.empty()) return true;
      const Status written = disk.Write(fd, beside, records, offset);
      if (!written) fail(written.error());
      offset += records.size();
      records.clear();
      return written.has_value();
    };
    for (size_t list = first; list < last; ++list) {
      auto* const codes = reinterpret_cast<uint8_t*>(section(layout.codes)) + slots[list] * code.columns();
      auto* const factors = reinterpret_cast<float*>(section(layout.factors)) + slots[list];
      const int8_t* const centre = lists.centres.data() + list * layout.dimension;
      for (uint64_t at = begins[list]; at < begins[list + 1]; ++at) {
        const RowId id = plan.rows[order[at]];
        const auto row = plan.sources[id.source]->Row(id.row);
        if (!row) return fail(row.error());
        for (size_t i = 0; i < layout.dimension; ++i) {
          residual[i] = static_cast<float>(row->values[i]) * row->scale -
                        static_cast<float>(centre[i]) * lists.scales[list];
        }
        const uint64_t slot = at - begins[list];
        factors[slot] = Encode(residual, code, bytes.data());
        uint8_t* const group = codes + slot / kGroup * kGroup * code.columns() + BytePlace(slot % kGroup);
        for (size_t c = 0; c < bytes.size(); ++c) group[c * kGroup] = bytes[c];
        records.resize(records.size() + layout.stride);
        WriteRecord(*row, at, layout, records.data() + records.size() - layout.stride);
        if (records.size() >= kBlock && !flush()) return;
      }
    }
    flush();
  });
  TRY_STATUS(failed);
  TRY_STATUS(disk.Write(fd, beside, resident.span(), layout.begins));
  std::vector<uint64_t> table(BlocksOf(layout.resident_bytes()));
  for (uint64_t block = 0; block < table.size(); ++block) {
    const uint64_t begin = block * kBlock;
    table[block] =
        Checksum(resident.span().subspan(begin, std::min(kBlock, layout.resident_bytes() - begin)));
  }
  TRY_STATUS(disk.Write(fd, beside, std::as_bytes(std::span(table)), layout.checksums));
  Header header{};
  kMagic.copy(header.magic, sizeof(header.magic));
  kVersion.copy(header.version, sizeof(header.version));
  header.dimension = static_cast<uint32_t>(layout.dimension);
  header.bits = static_cast<uint32_t>(layout.bits);
  header.rows = rows;
  header.slots = layout.slots;
  header.lists = layout.lists;
  header.name_bytes = layout.name_bytes;
  header.owner = plan.owner;
  header.table_checksum = Checksum(std::as_bytes(std::span(table)));
  Page page{};
  std::memcpy(page.data(), &header, sizeof(header));
  const uint64_t check = Checksum(std::span(page).first(kPage - 8));
  std::memcpy(page.data() + kPage - 8, &check, sizeof(check));
  TRY_STATUS(disk.Write(fd, beside, page, 0));
  TRY_STATUS(disk.Sync(fd, beside));
  TRY_STATUS(disk.Rename(beside, path));
  unlinker.path.clear();
  return disk.SyncFolder(path.substr(0, path.rfind('/') + 1));
}

}  // namespace weir::identity
