#include "study/effects.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include "study/combinations.h"
#include "study/factor.h"

namespace weir::study {
namespace {

using Pair = std::pair<size_t, size_t>;  // configurations: from, to
using Pairs = std::set<Pair>;

std::map<std::string, size_t> IndexOf(const std::vector<Combination>& combinations) {
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < combinations.size(); ++i) index.emplace(DumpJson(combinations[i].factors), i);
  return index;
}

// Combinations as they were spelled out, before the rules took factors away: in one process there is no
// protocol, and yet the step from there to a microservice is one of architecture alone.
Pairs PairsOf(const Design& design, const std::map<std::string, size_t>& index, const std::string& factor,
              const Json& from, const Json& to) {
  Pairs pairs;
  for (const Combination& one : design.combinations) {
    const auto level = one.factors.find(factor);
    if (level == one.factors.end() || *level != from || !one.configuration) continue;
    Json other = one.factors;
    other[factor] = to;
    const auto found = index.find(DumpJson(other));
    if (found == index.end()) continue;
    const auto configuration = design.combinations[found->second].configuration;
    if (configuration && *configuration != *one.configuration)
      pairs.emplace(*one.configuration, *configuration);
  }
  return pairs;
}

// Returns, for each block in which all pairs count, the mean of their log ratios. A pair without any
// measurement, as where a configuration was skipped, is left out and not counted in `used`.
std::vector<double> MeanLogs(const Measured& measured, const Pairs& pairs, const std::string& metric,
                             int64_t& used) {
  std::map<int, std::vector<double>> by_block;
  used = 0;
  for (const auto& [from, to] : pairs) {
    const auto under = measured.ByBlock(from, metric), over = measured.ByBlock(to, metric);
    bool any = false;
    for (const auto& [block, value] : over) {
      const auto reference = under.find(block);
      if (reference == under.end() || !(value > 0) || !(reference->second > 0)) continue;
      by_block[block].push_back(std::log(value / reference->second));
      any = true;
    }
    used += any;
  }
  std::vector<double> means;
  for (const auto& [block, logs] : by_block) {
    if (std::ssize(logs) != used) continue;
    means.push_back(std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size()));
  }
  return means;
}

std::vector<Json> LevelsOf(const Design& design, const std::string& factor) {
  std::vector<Json> levels;
  for (const Combination& one : design.combinations) {
    const auto level = one.factors.find(factor);
    if (level != one.factors.end() && std::ranges::find(levels, *level) == levels.end())
      levels.push_back(*level);
  }
  return levels;
}

// Returns the level that a pair has in another factor: one end may not have that factor at all. Null where
// neither has it.
Json LevelIn(const Design& design, const Pair& pair, const std::string& factor) {
  for (const size_t end : {pair.second, pair.first}) {
    const Json& factors = design.configurations[end].factors;
    if (const auto level = factors.find(factor); level != factors.end()) return *level;
  }
  return nullptr;
}

// The pairs that have one level of another factor.
struct Group {
  Json level;
  Pairs pairs;
};

std::vector<Group> SplitBy(const Design& design, const Pairs& pairs, const std::string& other) {
  std::vector<Group> groups;
  for (const Pair& pair : pairs) {
    const Json level = LevelIn(design, pair, other);
    auto group = std::ranges::find(groups, level, &Group::level);
    if (group == groups.end()) {
      group = groups.emplace(groups.end());
      group->level = level;
    }
    group->pairs.insert(pair);
  }
  return groups;
}

std::vector<LevelEffect> EffectsByLevel(const Design& design, const Measured& measured, const Pairs& pairs,
                                        const std::string& metric, const std::string& other,
                                        const AnalysisOptions& options) {
  std::vector<LevelEffect> effects;
  for (const Group& group : SplitBy(design, pairs, other)) {
    LevelEffect effect;
    const auto tested = TestLogs(MeanLogs(measured, group.pairs, metric, effect.pairs), options);
    if (!tested) continue;
    static_cast<Tested&>(effect) = *tested;
    effect.other = other;
    effect.level = group.level;
    effects.push_back(std::move(effect));
  }
  return effects;
}

double Spread(const std::vector<LevelEffect>& effects) {
  if (effects.size() < 2) return 0;
  const auto [least, most] =
      std::ranges::minmax_element(effects, {}, [](const LevelEffect& one) { return one.ratio.ratio; });
  return std::log(most->ratio.ratio / least->ratio.ratio);
}

bool Interacts(const Interactions& interactions, const std::string& a, const std::string& b) {
  return std::ranges::any_of(interactions, [&](const auto& one) {
    return (one.first == a && one.second == b) || (one.first == b && one.second == a);
  });
}

// Splits the effect by each factor that it interacts with; an effect in opposite directions also by the
// factor whose levels differ most, where the analysis of variance names none.
void AddLevels(const Design& design, const Measured& measured, const Pairs& pairs,
               const Interactions& interactions, const AnalysisOptions& options, Effect& effect) {
  std::vector<LevelEffect> widest;
  for (const Factor& factor : Factors()) {
    const std::string other(factor.name);
    if (other == effect.factor || LevelsOf(design, other).size() < 2) continue;
    auto levels = EffectsByLevel(design, measured, pairs, effect.metric, other, options);
    if (levels.size() < 2) continue;
    const bool matters = Spread(levels) > std::log1p(options.margin);
    if (matters && Interacts(interactions, effect.factor, other)) {
      std::ranges::move(levels, std::back_inserter(effect.by_level));
    } else if (Spread(levels) > Spread(widest)) {
      widest = std::move(levels);
    }
  }
  if (!effect.by_level.empty()) {
    effect.acts = Acts::kByLevel;
  } else if (effect.higher > 0 && effect.lower > 0) {
    effect.by_level = std::move(widest);
  }
  if (effect.higher > 0 && effect.lower > 0) effect.acts = Acts::kOpposite;
}

void CompareEach(const Measured& measured, const Pairs& pairs, const AnalysisOptions& options,
                 Effect& effect) {
  for (const auto& [from, to] : pairs) {
    if (auto one = Compare(measured, to, from, effect.metric, options))
      effect.each.push_back(std::move(*one));
  }
}

void CountDirections(Effect& effect) {
  for (const Comparison& one : effect.each) {
    effect.higher += one.told == Told::kHigher || (one.told == Told::kSmall && one.ratio.ratio > 1);
    effect.lower += one.told == Told::kLower || (one.told == Told::kSmall && one.ratio.ratio < 1);
  }
}

// Returns the levels of the factors that differ between configurations, without the architecture.
std::string OtherLevels(const Design& design, size_t configuration) {
  std::string text;
  for (const Factor& factor : Factors()) {
    const std::string name(factor.name);
    const Json& factors = design.configurations[configuration].factors;
    const auto level = factors.find(name);
    if (name == "architecture" || level == factors.end() || LevelsOf(design, name).size() < 2) continue;
    text += (text.empty() ? "" : ", ") + NamedLevelText(name, *level);
  }
  return text;
}

}  // namespace

std::string_view ToString(Acts acts) {
  switch (acts) {
    case Acts::kAlike:
      return "alike";
    case Acts::kByLevel:
      return "differently by level";
    case Acts::kOpposite:
      return "in opposite directions";
  }
  return "";
}

std::vector<Effect> FindEffects(const StudyFile& study, const Design& design, const Measured& measured,
                                const Interactions& interactions, const AnalysisOptions& options) {
  const auto index = IndexOf(design.combinations);
  const Json base = BaseCombination(study);
  std::vector<Effect> effects;
  std::vector<Pairs> pairs_of;
  for (const Factor& factor : Factors()) {
    const std::string name(factor.name);
    if (!base.contains(name)) continue;
    for (const Json& to : LevelsOf(design, name)) {
      if (to == base[name]) continue;
      Effect effect;
      effect.factor = name;
      effect.from = base[name];
      effect.to = to;
      effect.metric = study.objective.metric;
      Pairs pairs = PairsOf(design, index, name, effect.from, to);
      const auto tested = TestLogs(MeanLogs(measured, pairs, effect.metric, effect.pairs), options);
      if (!tested) continue;
      static_cast<Tested&>(effect) = *tested;
      CompareEach(measured, pairs, options, effect);
      effects.push_back(std::move(effect));
      pairs_of.push_back(std::move(pairs));
    }
  }
  std::vector<Tested*> pairs, shown;
  for (Effect& effect : effects) {
    for (Comparison& one : effect.each) pairs.push_back(&one);
  }
  AdjustFamily(pairs, options);
  for (size_t i = 0; i < effects.size(); ++i) {
    CountDirections(effects[i]);
    AddLevels(design, measured, pairs_of[i], interactions, options, effects[i]);
  }
  for (Effect& effect : effects) {
    shown.push_back(&effect);
    for (LevelEffect& level : effect.by_level) shown.push_back(&level);
  }
  AdjustFamily(shown, options);
  return effects;
}

std::vector<ArchitecturePair> CompareArchitectures(const StudyFile& study, const Design& design,
                                                   const Measured& measured, const AnalysisOptions& options) {
  const auto index = IndexOf(design.combinations);
  const std::vector<Json> levels = LevelsOf(design, "architecture");
  std::vector<ArchitecturePair> found;
  for (size_t a = 0; a < levels.size(); ++a) {
    for (size_t b = a + 1; b < levels.size(); ++b) {
      for (const auto& [from, to] : PairsOf(design, index, "architecture", levels[a], levels[b])) {
        auto one = Compare(measured, to, from, study.objective.metric, options);
        if (!one) continue;
        ArchitecturePair pair;
        static_cast<Comparison&>(pair) = *std::move(one);
        pair.from = levels[a];
        pair.to = levels[b];
        pair.at = OtherLevels(design, to);
        found.push_back(std::move(pair));
      }
    }
  }
  std::vector<Tested*> family;
  for (ArchitecturePair& one : found) family.push_back(&one);
  AdjustFamily(family, options);
  return found;
}

}  // namespace weir::study
