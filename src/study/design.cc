#include "study/design.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/seed.h"
#include "base/shuffle.h"
#include "study/choices.h"
#include "study/combinations.h"
#include "study/factor.h"
#include "study/rules.h"
#include "study/waterfall.h"

namespace weir::study {
namespace {

constexpr int64_t kMostTrials = 1'000'000;
constexpr std::pair<Role, std::string_view> kRoles[] = {{Role::kTrial, "trial"},
                                                        {Role::kReferenceStart, "reference-start"},
                                                        {Role::kReferenceMiddle, "reference-middle"},
                                                        {Role::kReferenceEnd, "reference-end"}};

std::string TrialId(const Configuration& configuration, int block, Role role) {
  const std::string text =
      fmt::format("{} block {} {}", DumpJson(configuration.factors), block, ToString(role));
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

// Applies the rules, and collects what comes to the same.
class Configurations {
 public:
  explicit Configurations(const StudyFile& study) : study_(study), used_(study.except.size()) {}

  // The configuration that `factors` come to, new or known; nothing where it was dropped.
  std::optional<size_t> Add(Json factors) {
    Combination combination{.factors = std::move(factors)};
    NoteExceptions(combination.factors);
    Sense sense = MakeSense(combination.factors);
    NoteExceptions(sense.factors);
    combination.changes = std::move(sense.changes);
    combination.dropped = sense.dropped.value_or(WhyExcepted(sense.factors));
    if (combination.dropped.empty()) {
      const auto [known, added] = index_.try_emplace(DumpJson(sense.factors), configurations.size());
      if (added) configurations.push_back({.factors = std::move(sense.factors)});
      combination.configuration = known->second;
    }
    combinations.push_back(std::move(combination));
    return combinations.back().configuration;
  }

  // The first of the study's exceptions that no combination is.
  const Exception* FirstUnused() const {
    for (size_t i = 0; i < used_.size(); ++i) {
      if (!used_[i]) return &study_.except[i];
    }
    return nullptr;
  }

  std::vector<Combination> combinations;
  std::vector<Configuration> configurations;

 private:
  std::string WhyExcepted(const Json& factors) const {
    for (const Exception& one : study_.except) {
      if (Matches(factors, one.when)) return one.why;
    }
    return "";
  }
  void NoteExceptions(const Json& factors) {
    for (size_t i = 0; i < used_.size(); ++i) {
      if (Matches(factors, study_.except[i].when)) used_[i] = true;
    }
  }

  const StudyFile& study_;
  std::vector<bool> used_;  // by exception
  std::map<std::string, size_t> index_;
};

// Factors with more than one level in the combinations, of which "none is named" is one. Where the rules
// alone make a difference, as of in_flight in sync mode, the factors they go by tell it.
std::vector<std::string> VaryingFactors(const std::vector<Combination>& combinations) {
  std::vector<std::string> varying;
  for (const Factor& factor : Factors()) {
    std::set<std::string> levels;
    for (const Combination& one : combinations) {
      const auto level = one.factors.find(std::string(factor.name));
      if (one.configuration) levels.insert(level == one.factors.end() ? "" : DumpJson(*level));
    }
    if (levels.size() > 1) varying.emplace_back(factor.name);
  }
  return varying;
}

// The levels of `factors` but those that `base` has too; the architecture always.
std::string LabelOf(const Json& factors, const std::vector<std::string>& varying, const Json& base) {
  std::string label;
  for (const std::string& factor : varying) {
    if (!factors.contains(factor)) continue;
    const bool usual = factor != "architecture" && base.contains(factor) && base[factor] == factors[factor];
    if (!usual) label += (label.empty() ? "" : ", ") + NamedLevelText(factor, factors[factor]);
  }
  return label;
}

// Gives each configuration a label of its own. A star's are read from its base; where that does not tell two
// apart, and in a factorial, every level that varies is named.
void AddLabels(const StudyFile& study, Design& design) {
  const std::vector<std::string> varying = VaryingFactors(design.combinations);
  const Json base = BaseCombination(study);
  const auto add = [&](const Json& usual) {
    std::set<std::string> labels;
    for (Configuration& one : design.configurations) {
      one.label = LabelOf(one.factors, varying, usual);
      if (one.label.empty()) one.label = study.name;
      if (!one.waterfall_only) labels.insert(one.label);
    }
    const auto named = std::ranges::count(design.configurations, false, &Configuration::waterfall_only);
    return std::ssize(labels) == named;
  };
  if (study.layout == Layout::kStar && add(base)) {
    for (const std::string& factor : varying) {
      if (factor != "architecture" && base.contains(factor))
        design.unnamed += (design.unnamed.empty() ? "" : ", ") + NamedLevelText(factor, base[factor]);
    }
    return;
  }
  add(Json::object());
}

void AddBlock(const StudyFile& study, int block, Design& design) {
  const Seed seed = Seed(study.seed).Stream("block").Stream(static_cast<uint64_t>(block));
  std::vector<size_t> order(design.configurations.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  Random random = seed.Stream("order").MakeRandom();
  Shuffle(order, random);

  int position = 0;
  const auto add = [&](size_t configuration, Role role) {
    design.trials.push_back({.configuration = configuration,
                             .block = block,
                             .position = position++,
                             .role = role,
                             .seed = seed.Stream("trial").value(),
                             .id = TrialId(design.configurations[configuration], block, role)});
  };
  add(design.reference, Role::kReferenceStart);
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == order.size() / 2) add(design.reference, Role::kReferenceMiddle);
    add(order[i], Role::kTrial);
  }
  add(design.reference, Role::kReferenceEnd);
}

// Adds the steps of the waterfall: configurations of the study where they are, else more of them. A step that
// comes to the same as the one before, or does not exist, is left out.
Result<std::vector<PlannedStep>> AddWaterfall(const StudyFile& study, Configurations& found) {
  std::vector<PlannedStep> steps;
  if (!study.waterfall) return steps;
  for (WaterfallCombination& one : TRY(WaterfallCombinations(study))) {
    const size_t known = found.configurations.size();
    const auto configuration = found.Add(std::move(one.factors));
    found.combinations.pop_back();
    if (!configuration || (!steps.empty() && steps.back().configuration == *configuration)) continue;
    if (*configuration == known) found.configurations[known].waterfall_only = true;
    steps.push_back({.name = one.name, .change = one.change, .configuration = *configuration});
  }
  return steps;
}

void LabelWaterfall(Design& design) {
  for (const PlannedStep& one : design.waterfall) {
    Configuration& configuration = design.configurations[one.configuration];
    if (configuration.waterfall_only) configuration.label = "waterfall: " + one.name;
  }
}

bool ReadsData(const Configuration& configuration) {
  return configuration.factors.value("load", Json("application")) == "application";
}

bool IsDistributed(const Configuration& configuration) {
  return configuration.factors.value("architecture", Json()) == ToString(Architecture::kDistributed);
}

Status Check(const StudyFile& study, const Design& design) {
  if (study.data.empty() && std::ranges::any_of(design.configurations, ReadsData)) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "study {} names no data, and its application reads some: add data: FOLDER, or load: closed",
            study.name));
  }
  if (study.trial.seconds && std::ranges::any_of(design.configurations, ReadsData)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("study {}: a trial's length in seconds is of the load generator, and the "
                            "application is played too: give its length in images, passes or batches",
                            study.name));
  }
  if (study.server_host && std::ranges::none_of(design.configurations, IsDistributed)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("study {}: network.hosts names a second node, and nothing is played there: add "
                            "architecture: distributed, or leave hosts out",
                            study.name));
  }
  if (static_cast<int64_t>(design.configurations.size() + 3) * study.repeats > kMostTrials) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("study {} has more than {} trials: {} configurations and 3 references, {} times each",
                    study.name, kMostTrials, design.configurations.size(), study.repeats));
  }
  return {};
}

}  // namespace

std::string_view ToString(Role role) {
  for (const auto& [one, name] : kRoles) {
    if (one == role) return name;
  }
  return "";
}

std::optional<Role> ParseRole(std::string_view text) {
  for (const auto& [role, name] : kRoles) {
    if (name == text) return role;
  }
  return std::nullopt;
}

Result<Design> MakeDesign(const StudyFile& study) {
  Configurations found(study);
  std::vector<Json> combinations = TRY(AllCombinations(study));
  for (Json& one : combinations) found.Add(std::move(one));
  if (const Exception* unused = found.FirstUnused()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("study {}: except (why: {}): no combination is that one; mend it, or leave it out",
                    study.name, unused->why.empty() ? "-" : EscapeBytes(unused->why)));
  }
  if (found.configurations.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("study {}: no combination is left: {}", study.name,
                            found.combinations.empty() ? "there is none" : found.combinations[0].dropped));
  }
  // The reference is one of the study's own configurations, or one more. A base that makes no sense by
  // itself, as where the study is of the load generator over servers, gives way to the first configuration.
  const auto wanted = found.Add(BaseCombination(study, study.reference));
  if (!wanted && !study.reference.empty()) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("study {}: the reference does not exist: {}",
                                                         study.name, found.combinations.back().dropped));
  }
  found.combinations.pop_back();  // it was asked for, not combined
  const std::vector<PlannedStep> waterfall = TRY(AddWaterfall(study, found));
  Design design{.combinations = std::move(found.combinations),
                .configurations = std::move(found.configurations),
                .reference = wanted.value_or(0),
                .blocks = study.repeats,
                .waterfall = waterfall};
  TRY_STATUS(Check(study, design));
  AddLabels(study, design);
  LabelWaterfall(design);
  for (int block = 0; block < study.repeats; ++block) AddBlock(study, block, design);
  return design;
}

std::optional<int64_t> ImagesPerTrial(const TrialLength& length, const Configuration& configuration,
                                      std::optional<int64_t> set_images) {
  if (length.seconds) return std::nullopt;
  const Json& factors = configuration.factors;
  const auto batch = factors.value("batch", int64_t{8}), in_flight = factors.value("in_flight", int64_t{1});
  const int64_t least = std::max((length.batches + in_flight) * batch, length.images.value_or(0));
  if (!length.passes || !ReadsData(configuration)) return least;
  if (!factors.contains("images") && !set_images) return std::nullopt;
  const int64_t set = factors.contains("images") ? factors["images"].get<int64_t>() : *set_images;
  const double wanted = *length.passes * static_cast<double>(set * factors.value("replication", int64_t{1}));
  return std::max(static_cast<int64_t>(std::ceil(wanted)), least);
}

std::vector<Trial> PilotTrials(const Design& design) {
  std::vector<Trial> pilots;
  std::set<std::string> architectures;
  for (const Trial& trial : design.trials) {  // the reference is the first
    const Json& factors = design.configurations[trial.configuration].factors;
    if (architectures.insert(factors.value("architecture", std::string("in-process"))).second)
      pilots.push_back(trial);
  }
  return pilots;
}

std::optional<double> TimeNeeded(const Design& design,
                                 std::span<const std::optional<double>> seconds_by_configuration,
                                 std::span<const std::string> done) {
  double sum = 0;
  int64_t tried = 0;
  for (const std::optional<double>& seconds : seconds_by_configuration) {
    if (!seconds) continue;
    sum += *seconds;
    ++tried;
  }
  if (tried == 0) return std::nullopt;
  const std::set<std::string> over(done.begin(), done.end());
  double needed = 0;
  for (const Trial& trial : design.trials) {
    if (over.contains(trial.id)) continue;
    const bool known = trial.configuration < seconds_by_configuration.size();
    const std::optional<double> seconds =
        known ? seconds_by_configuration[trial.configuration] : std::nullopt;
    needed += seconds.value_or(sum / static_cast<double>(tried));
  }
  return needed;
}

}  // namespace weir::study
