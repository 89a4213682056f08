#include "report/study_view.h"

#include <algorithm>

#include "report/number.h"

namespace weir::report {
namespace {

const Json& Null() {
  static const Json kNull;
  return kNull;
}

}  // namespace

const Json& StudyView::At(const char* key) const {
  const auto found = json_.find(key);
  return found == json_.end() ? Null() : *found;
}

const Json& StudyView::Metric(size_t index, std::string_view metric) const {
  const Json& metrics = configuration(index)["metrics"];
  const auto found = metrics.find(std::string(metric));
  return found == metrics.end() ? Null() : *found;
}

const Json& StudyView::Comparison(size_t index, std::string_view metric) const {
  for (const Json& one : At("comparisons")) {
    if (one["configuration"] == index && one["metric"].get_ref<const std::string&>() == metric) return one;
  }
  return Null();
}

std::optional<StudyView::Word> StudyView::CommonestWord(size_t index, std::string_view metric) const {
  const Json& words = configuration(index)["words"];
  const auto found = words.find(std::string(metric));
  if (found == words.end()) return std::nullopt;
  Word commonest;
  for (const auto& [word, times] : found->items()) {
    const auto count = times.get<int64_t>();
    commonest.of += count;
    if (count > commonest.times) {
      commonest.word = word;
      commonest.times = count;
    }
  }
  return commonest;
}

std::optional<double> NumberAt(const Json& object, const char* key, double scale) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>() * scale;
}

std::string ReasonsText(const Json& verdict) {
  std::string text;
  for (const Json& reason : verdict["reasons"])
    text += (text.empty() ? "" : "; ") + reason["reason"].get<std::string>() + ": " +
            reason["evidence"].get<std::string>();
  return text;
}

std::optional<double> LowAt(const Json& figures, const char* middle, double scale) {
  const auto low = NumberAt(figures, "low", scale);
  const auto least = NumberAt(figures, figures.contains("min") ? "min" : middle);
  if (low && least && *least >= 0) return std::max(0.0, *low);
  return low;
}

std::string IntervalText(const Json& figures, const char* middle, double scale) {
  const auto value = NumberAt(figures, middle, scale);
  return value ? WithInterval(*value, LowAt(figures, middle, scale), NumberAt(figures, "high", scale)) : "-";
}

}  // namespace weir::report
