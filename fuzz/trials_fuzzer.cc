// Any bytes as a study's journal, and any JSON as what its trials were set to and measured: a table whose
// columns are there once, or a refusal.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "predict/table/trials.h"
#include "results/trial_result.h"

namespace {

using namespace weir;

void Check(std::string_view journal) {
  const auto csv = predict::ParseTrials(journal);
  if (!csv) {
    CHECK(!csv.error().message.empty());
    return;
  }
  CHECK(csv->rows() > 0 && csv->cells.size() == csv->columns.size() * csv->lines.size());
  CHECK(std::set<std::string>(csv->columns.begin(), csv->columns.end()).size() == csv->columns.size());
  std::set<std::string> ids;
  for (int64_t row = 0; row < csv->rows(); ++row) CHECK(ids.insert(csv->row(row)[0]).second);
}

// Each line that is an object, as the metrics of a trial, and as the factors of the next.
std::string JournalOf(std::string_view text) {
  std::string journal;
  results::TrialResult record;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto json = ParseJson(line);
    if (!json || !json->is_object()) continue;
    record.metrics = *json;
    journal += DumpJson({{"entry", "trial"},
                         {"id", std::to_string(line.size() % 3)},
                         {"attempt", 1},
                         {"configuration", 0},
                         {"block", 0},
                         {"position", 0},
                         {"role", "trial"},
                         {"seed", 1},
                         {"took_s", 0.5},
                         {"record", record.ToJson()}}) +
               "\n";
    record.factors = *json;
  }
  return journal;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Check(text);
  Check(JournalOf(text));
  return 0;
}
