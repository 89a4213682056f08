#include "study/measured.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace weir::study {
namespace {

void FlattenInto(const std::string& prefix, const Json& json, FlatMetrics& flat) {
  for (const auto& [key, value] : json.items()) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (value.is_object()) {
      FlattenInto(name, value, flat);
    } else if (value.is_number() && std::isfinite(value.get<double>())) {
      flat.numbers.emplace_back(name, value.get<double>());
    } else if (value.is_string()) {
      flat.words.emplace_back(name, value.get<std::string>());
    }
  }
}

}  // namespace

FlatMetrics Flatten(const Json& metrics) {
  FlatMetrics flat;
  if (metrics.is_object()) FlattenInto("", metrics, flat);
  return flat;
}

std::vector<const PlayedTrials*> LastTries(std::span<const PlayedTrials> played) {
  std::vector<const PlayedTrials*> last;
  std::map<std::string, size_t> place;
  for (const PlayedTrials& one : played) {
    const auto [known, is_new] = place.try_emplace(one.trial.id, last.size());
    if (is_new) {
      last.push_back(&one);
    } else if (one.record.verdict.standing <= last[known->second]->record.verdict.standing) {
      last[known->second] = &one;
    }
  }
  return last;
}

bool Counts(const PlayedTrials& played) {
  const results::Standing standing = played.record.verdict.standing;
  return standing == results::Standing::kValid || standing == results::Standing::kSuspect;
}

Measured::Measured(const Design& design, std::span<const PlayedTrials> played)
    : by_configuration_(design.configurations.size()) {
  std::set<std::string> known;
  for (const PlayedTrials* one : LastTries(played)) {
    if (!Counts(*one) || one->trial.configuration >= by_configuration_.size()) continue;
    if (!one->trial.is_reference()) by_configuration_[one->trial.configuration].push_back(counted_.size());
    FlatMetrics flat = Flatten(one->record.metrics);
    for (const auto& [name, value] : flat.numbers) {
      if (known.insert(name).second) metrics_.push_back(name);
    }
    counted_.push_back({.played = one,
                        .numbers = {flat.numbers.begin(), flat.numbers.end()},
                        .words = std::move(flat.words)});
  }
}

std::map<int, double> Measured::ByBlock(size_t configuration, const std::string& metric) const {
  std::map<int, double> values;
  for (const size_t index : by_configuration_[configuration]) {
    const One& one = counted_[index];
    if (const auto found = one.numbers.find(metric); found != one.numbers.end())
      values[one.played->trial.block] = found->second;
  }
  return values;
}

std::vector<double> Measured::Values(size_t configuration, const std::string& metric) const {
  std::vector<double> values;
  for (const auto& [block, value] : ByBlock(configuration, metric)) values.push_back(value);
  return values;
}

std::vector<Measured::Value> Measured::Trials(const std::string& metric) const {
  std::vector<Value> values;
  for (const One& one : counted_) {
    if (one.played->trial.is_reference()) continue;
    if (const auto found = one.numbers.find(metric); found != one.numbers.end())
      values.push_back({.played = one.played, .value = found->second});
  }
  return values;
}

std::vector<Measured::Value> Measured::TrialsOf(size_t configuration, const std::string& metric) const {
  std::vector<Value> values;
  for (const size_t index : by_configuration_[configuration]) {
    const One& one = counted_[index];
    if (const auto found = one.numbers.find(metric); found != one.numbers.end())
      values.push_back({.played = one.played, .value = found->second});
  }
  return values;
}

std::map<int, double> Measured::References(Role role, const std::string& metric) const {
  std::map<int, double> values;
  for (const One& one : counted_) {
    if (one.played->trial.role != role) continue;
    if (const auto found = one.numbers.find(metric); found != one.numbers.end())
      values[one.played->trial.block] = found->second;
  }
  return values;
}

std::map<std::string, std::map<std::string, int64_t>> Measured::Words(size_t configuration) const {
  std::map<std::string, std::map<std::string, int64_t>> words;
  for (const size_t index : by_configuration_[configuration]) {
    for (const auto& [name, word] : counted_[index].words) ++words[name][word];
  }
  return words;
}

}  // namespace weir::study
