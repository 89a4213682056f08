#include "identity/fetch.h"

#include <fmt/format.h>
#include <liburing.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/text.h"

namespace weir::identity {
namespace {

constexpr uint64_t kPage = 4096;

// Returns the bytes that hold one record wherever it begins in a page.
uint64_t SlotBytes(const SegmentLayout& layout) { return (layout.stride + 2 * kPage - 1) / kPage * kPage; }

Status ViewRow(const Segment& segment, uint64_t row, const std::byte* record, size_t request,
               const RowFetcher::Visit& visit) {
  const auto view = ParseRecord(record, row, segment.layout());
  if (!view) return Context(fmt::format("{}: row {}", segment.path(), row), view.error());
  visit(request, *view);
  return {};
}

// Views rows that lie in memory or in a mapping.
Status ViewAll(std::span<const Segment* const> segments, std::span<const RowRequest> requests,
               const RowFetcher::Visit& visit) {
  constexpr size_t kAhead = 8;  // rows whose first lines are on their way from memory
  for (size_t i = 0; i < requests.size(); ++i) {
    if (i + kAhead < requests.size()) {
      const RowRequest& next = requests[i + kAhead];
      const std::byte* const record = segments[next.segment]->record(next.row);
      for (uint32_t at = 0; at < segments[next.segment]->layout().stride; at += 64)
        __builtin_prefetch(record + at);
    }
    const RowRequest& request = requests[i];
    const Segment& segment = *segments[request.segment];
    TRY_STATUS(ViewRow(segment, request.row, segment.record(request.row), i, visit));
  }
  return {};
}

// Reads from storage that this thread has waited for because a page of a mapping was not in memory.
long MajorFaults() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_majflt;
}

}  // namespace

struct RowFetcher::Ring {
  io_uring uring{};
  bool ready = false;
  std::byte* buffers = nullptr;
  uint64_t buffer_bytes = 0;
  ~Ring() {
    if (ready) ::io_uring_queue_exit(&uring);
    std::free(buffers);
  }
};

RowFetcher::RowFetcher(Options options) : options_(options) {}
RowFetcher::~RowFetcher() = default;

Status RowFetcher::Fetch(std::span<const Segment* const> segments, std::span<const RowRequest> requests,
                         const Visit& visit) {
  if (requests.empty()) return {};
  switch (segments[requests.front().segment]->access()) {
    case RowAccess::kDirect:
      return FetchDirect(segments, requests, visit);
    case RowAccess::kMemory:
      return ViewAll(segments, requests, visit);
    case RowAccess::kMap:
      break;
  }
  return FetchMapped(segments, requests, visit);
}

// Pages that the cache lacks would be read one after the other, as each is touched. Once a look-up has met
// one, the look-ups after it ask for all of their pages first, so that their reads go side by side. A page
// that is on its way is no major fault, so the number of those look-ups is fixed.
Status RowFetcher::FetchMapped(std::span<const Segment* const> segments, std::span<const RowRequest> requests,
                               const Visit& visit) {
  if (ask_first_ > 0) {
    --ask_first_;
    for (const RowRequest& request : requests) {
      const Segment& segment = *segments[request.segment];
      const auto at = reinterpret_cast<uintptr_t>(segment.record(request.row));
      const uintptr_t page = at / kPage * kPage;
      ::madvise(reinterpret_cast<void*>(page), at + segment.layout().stride - page, MADV_WILLNEED);
    }
  }
  const long before = MajorFaults();
  TRY_STATUS(ViewAll(segments, requests, visit));
  constexpr int kAskFirst = 64;
  if (MajorFaults() > before) ask_first_ = kAskFirst;
  return {};
}

Status RowFetcher::FetchDirect(std::span<const Segment* const> segments, std::span<const RowRequest> requests,
                               const Visit& visit) {
  if (ring_ == nullptr) {
    auto ring = std::make_unique<Ring>();
    const int made = ::io_uring_queue_init(static_cast<unsigned>(options_.depth), &ring->uring, 0);
    if (made < 0) {
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("io_uring: {}: this system or container forbids it; use --access map",
                              std::strerror(-made)));
    }
    ring->ready = true;
    ring_ = std::move(ring);
  }
  uint64_t slot = 0;
  for (const Segment* segment : segments) slot = std::max(slot, SlotBytes(segment->layout()));
  const size_t round = std::min(options_.depth, requests.size());
  if (ring_->buffer_bytes < slot * round) {
    std::free(ring_->buffers);
    ring_->buffers = static_cast<std::byte*>(std::aligned_alloc(kPage, slot * round));
    ring_->buffer_bytes = ring_->buffers == nullptr ? 0 : slot * round;
    if (ring_->buffers == nullptr)
      return Fail(ErrorCode::kOverloaded, "out of memory for the rows of a look-up");
  }
  io_uring* const uring = &ring_->uring;
  for (size_t first = 0; first < requests.size(); first += round) {
    const size_t count = std::min(round, requests.size() - first);
    for (size_t i = 0; i < count; ++i) {
      const Segment& segment = *segments[requests[first + i].segment];
      const uint64_t at = segment.layout().records + requests[first + i].row * segment.layout().stride;
      const uint64_t begin = at / kPage * kPage;
      const uint64_t bytes = (at + segment.layout().stride - begin + kPage - 1) / kPage * kPage;
      io_uring_sqe* const entry = ::io_uring_get_sqe(uring);
      CHECK(entry != nullptr);
      ::io_uring_prep_read(entry, segment.direct_fd(), ring_->buffers + i * slot,
                           static_cast<unsigned>(bytes), begin);
      ::io_uring_sqe_set_data64(entry, i);
    }
    // Every read that was begun is waited for, so that none writes into a buffer later.
    Status status;
    size_t begun = 0;
    for (int tries = 0; begun < count && status;) {
      const int submitted = ::io_uring_submit(uring);
      if (submitted > 0) begun += static_cast<size_t>(submitted);
      const bool again = submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY;
      if (submitted <= 0 && (!again || ++tries == 1000)) status = FailErrno("io_uring", -submitted);
    }
    std::vector<size_t> done;
    for (size_t i = 0; i < begun; ++i) {
      io_uring_cqe* result = nullptr;
      int waited = 0;
      do {
        waited = ::io_uring_wait_cqe(uring, &result);
      } while (waited == -EINTR);
      CHECK(waited == 0);
      const auto which = static_cast<size_t>(::io_uring_cqe_get_data64(result));
      const int got = result->res;
      ::io_uring_cqe_seen(uring, result);
      const Segment& segment = *segments[requests[first + which].segment];
      const uint64_t at = segment.layout().records + requests[first + which].row * segment.layout().stride;
      if (got < 0) {
        status = FailErrno(segment.path(), -got);
      } else if (static_cast<uint64_t>(got) < at % kPage + segment.layout().stride) {
        status = Fail(ErrorCode::kCorrupt, segment.path() + ": shrank while it was read");
      } else if (status && options_.storage_delay > Duration{}) {
        done.push_back(which);
      } else if (status) {
        status = ViewRow(segment, requests[first + which].row, ring_->buffers + which * slot + at % kPage,
                         first + which, visit);
      }
    }
    if (options_.storage_delay > Duration{}) SleepUntil(clock_.Now() + options_.storage_delay);
    for (const size_t which : done) {
      const Segment& segment = *segments[requests[first + which].segment];
      const uint64_t at = segment.layout().records + requests[first + which].row * segment.layout().stride;
      if (status)
        status = ViewRow(segment, requests[first + which].row, ring_->buffers + which * slot + at % kPage,
                         first + which, visit);
    }
    if (!status) {
      ring_.reset();  // reads that were not begun are dropped with it
      return status;
    }
  }
  return {};
}

}  // namespace weir::identity
