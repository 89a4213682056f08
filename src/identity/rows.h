// Rows of an index wherever they lie: sealed files, the log's rows in memory, the spool of a build.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "identity/code.h"

namespace weir::identity {

// A row of the index; it points into memory of its holder.
struct RowView {
  const int8_t* values = nullptr;  // rotated, as many as the dimension
  float scale = 0;
  std::string_view name;
};

// Rows by number. Threads: any.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual uint64_t rows() const = 0;
  // REQUIRES: row < rows(). kCorrupt where the row's bytes are damaged.
  virtual Result<RowView> Row(uint64_t row) const = 0;
  // Returns the list that the row is in, where the source has the lists that `lists` names.
  virtual std::optional<uint32_t> ListOf(uint64_t /*row*/, const void* /*lists*/) const {
    return std::nullopt;
  }
};

// Rows that are enrolled and not yet sealed. One thread adds; others read the rows that were there when they
// learned of their number through a lock.
class TailBlock final : public RowSource {
 public:
  static constexpr size_t kRows = 1024;
  explicit TailBlock(size_t dimension)
      : dimension_(dimension), values_(kRows * dimension), scales_(kRows), names_(kRows) {}

  // REQUIRES: at < kRows, and the rows before it were set.
  void Set(size_t at, std::string_view name, const QuantisedVector& vector) {
    std::copy(vector.values.begin(), vector.values.end(),
              values_.begin() + static_cast<ptrdiff_t>(at * dimension_));
    scales_[at] = vector.scale;
    names_[at] = name;
  }
  const int8_t* values() const { return values_.data(); }
  float scale(size_t at) const { return scales_[at]; }
  const std::string& name(size_t at) const { return names_[at]; }
  uint64_t rows() const override { return kRows; }
  Result<RowView> Row(uint64_t row) const override {
    return RowView{values_.data() + row * dimension_, scales_[row], names_[row]};
  }

 private:
  const size_t dimension_;
  std::vector<int8_t> values_;
  std::vector<float> scales_;
  std::vector<std::string> names_;
};

// A block and the number of its rows that are enrolled.
struct TailPart {
  std::shared_ptr<const TailBlock> block;
  size_t rows = 0;
};

}  // namespace weir::identity
