// A saved predictor with bytes of it changed, or any bytes at all: refused, or one that still answers every
// row of a table, each with a value or a reason, and that is saved and read again.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/csv.h"
#include "base/error.h"
#include "predict/predictor.h"
#include "predict/testing/made_set.h"

namespace {

using namespace weir;
using namespace weir::predict;

// One predictor for each way of estimating: what is in their files differs.
std::string Saved(const std::string& estimator) {
  const MadeSet made = MadeSet::Make();
  const Spec spec = *ParseSpec(made.spec);
  const Facts facts{.hardware = *Table::WithKey(*ParseCsv(made.hardware), "gpu"),
                    .networks = *Table::WithKey(*ParseCsv(made.networks), "network")};
  std::vector<Row> rows = *MakeRows(spec, facts, Table(*ParseCsv(made.rows)), WithTarget::kYes);
  rows.resize(60);
  const auto predictor = Predictor::Fit(spec, facts, rows, {.estimator = estimator, .threads = 2});
  CHECK(predictor.has_value());
  return predictor->Save();
}

const std::vector<std::string>& SavedOnes() {
  static const auto& saved =
      *new std::vector<std::string>{Saved("physical"), Saved("lr-sfs"), Saved("trees"), Saved("neighbours")};
  return saved;
}

// The first byte says which predictor is damaged, or that the rest is the text; each four bytes put a byte
// at a place.
std::string Damaged(const uint8_t* data, size_t size) {
  if (size == 0) return {};
  const auto& saved = SavedOnes();
  const size_t which = data[0] % (saved.size() + 1);
  if (which == saved.size()) return {reinterpret_cast<const char*>(data) + 1, size - 1};
  std::string text = saved[which];
  for (size_t i = 1; i + 4 <= size; i += 4) {
    const size_t place = (size_t{data[i]} << 16) | (size_t{data[i + 1]} << 8) | data[i + 2];
    text[place % text.size()] = static_cast<char>(data[i + 3]);
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto predictor = Predictor::Load(Damaged(data, size));
  if (!predictor) {
    CHECK(!predictor.error().message.empty());
    return 0;
  }
  static const Table& rows =
      *new Table(*ParseCsv("row_id,gpu,network,batch,gpu_count,precision\na,gpu-a,small,8,1,fp32\n"
                           "b,gpu-new,large,32,2,fp32\nc,gpu-z,wide,64,4,\nd,gpu-b,new,640,16,x\n"));
  const auto predictions = predictor->Predict(rows);
  if (!predictions) return 0;  // a key column of its spec may have another name now
  CHECK(predictions->size() == 4);
  for (const Prediction& prediction : *predictions) {
    CHECK(prediction.value.has_value() == (prediction.regime != Regime::kRefused));
    CHECK(prediction.value.has_value() || !prediction.outside.empty());
  }
  CHECK(Predictor::Load(predictor->Save()).has_value());
  return 0;
}
