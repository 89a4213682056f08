// Any bytes as a sealed file of identities: read without a crash, and searched where they are whole.
#include <cstddef>
#include <cstdint>
#include <span>

#include "identity/manifest.h"
#include "identity/search.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::identity;
  const auto segment = Segment::FromBytes(std::as_bytes(std::span(data, size)), 0);
  if (!segment) return 0;
  const auto& layout = (*segment)->layout();
  CHECK(layout.end == size);
  if (!(*segment)->VerifyRows({})) return 0;
  Team team(1);
  const std::vector<float> values(layout.dimension, 1);
  const SearchQuery query = MakeQuery(QuantiseRotated(values), layout.code());
  const SegmentUse use{*segment, layout.lists, 10};
  CHECK(FindCandidates(std::span(&query, 1), std::span(&use, 1), team).front().size() <= 10);
  return 0;
}
