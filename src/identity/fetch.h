// Reads the rows that a look-up ranks again: all of them in one round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "identity/segment.h"

namespace weir::identity {

struct RowRequest {
  uint32_t segment = 0;
  uint64_t row = 0;
};

// One thread at a time.
class RowFetcher {
 public:
  struct Options {
    // Added to the time at which each direct read is done, as a slower storage would: shows whether the
    // latency of storage matters to a look-up. The reads of a round wait together.
    Duration storage_delay{};
    size_t depth = 2048;  // direct reads under way at once: a look-up of no more rows takes one round
  };
  explicit RowFetcher(Options options);
  ~RowFetcher();

  // Calls visit(i, row) once for each request; with direct reads in the order in which they are done. The
  // view is valid in that call alone. kCorrupt names a damaged row; kIo; kUnsupported where the system
  // forbids io_uring.
  using Visit = std::function<void(size_t request, const RowView& row)>;
  Status Fetch(std::span<const Segment* const> segments, std::span<const RowRequest> requests,
               const Visit& visit);

 private:
  struct Ring;
  Status FetchDirect(std::span<const Segment* const> segments, std::span<const RowRequest> requests,
                     const Visit& visit);

  Status FetchMapped(std::span<const Segment* const> segments, std::span<const RowRequest> requests,
                     const Visit& visit);

  const Options options_;
  const SteadyClock clock_;
  int ask_first_ = 0;  // look-ups whose pages are asked for before they are touched
  std::unique_ptr<Ring> ring_;
};

}  // namespace weir::identity
