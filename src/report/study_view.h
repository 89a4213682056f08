// A study's result (the JSON of study/result_json.h) as its report looks at it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weir::report {

// A value: it refers to the JSON it was made of, which must outlive it.
class StudyView {
 public:
  explicit StudyView(const Json& result) : json_(result) {}

  const Json& json() const { return json_; }
  const Json& At(const char* key) const;  // null where absent
  size_t configurations() const { return At("configurations").size(); }
  const Json& configuration(size_t index) const { return json_["configurations"][index]; }
  std::string label(size_t index) const { return configuration(index)["label"].get<std::string>(); }
  const std::string& name() const { return json_["study"]["study"].get_ref<const std::string&>(); }
  std::string objective() const { return json_["study"]["objective"]["metric"].get<std::string>(); }
  bool higher_is_better() const { return json_["study"]["objective"]["better"] == "higher"; }
  size_t reference() const { return json_["reference"].get<size_t>(); }

  // {"n", "mean", ...} of one metric of a configuration; null where it was not measured.
  const Json& Metric(size_t index, std::string_view metric) const;
  // The configuration over the reference; null where there is none.
  const Json& Comparison(size_t index, std::string_view metric) const;
  // The commonest word of a metric, and how often it was said: {"decode", 18, 20}.
  struct Word {
    std::string word;
    int64_t times = 0, of = 0;
  };
  std::optional<Word> CommonestWord(size_t index, std::string_view metric) const;

 private:
  const Json& json_;
};

// The member of an object as a number, times `scale`; nothing where there is none.
std::optional<double> NumberAt(const Json& object, const char* key, double scale = 1);
// Why a verdict is not VALID: "steal: 3.1 %; slip: ..."; empty without reasons.
std::string ReasonsText(const Json& verdict);
// Where the interval of {"mean" or "ratio", "low", "min"} begins as people read it, times `scale`: one of few
// trials may reach below 0, where no rate, time or share is, and begins at 0 then; nothing without one.
std::optional<double> LowAt(const Json& figures, const char* middle, double scale);
// "412.1 (409 to 415)" of {"mean" or "ratio", "low", "high"}, times `scale`; "-" of null.
std::string IntervalText(const Json& figures, const char* middle = "mean", double scale = 1);

}  // namespace weir::report
