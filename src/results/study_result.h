// The results of `weir study --json` and of its dry run: what report.json holds, and what reports are made
// of. docs/results.md explains the figures.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "results/verdict.h"

namespace weir::results {

// The configurations of a study, and the combinations that came to none of their own.
struct StudyDesign {
  struct Configuration {
    std::string label;
    Json factors = Json::object();  // level by factor
    Json levels = Json::object();   // the same levels as text
    bool waterfall_only = false;    // a step of the waterfall that the study does not compare
    bool operator==(const Configuration&) const = default;
  };
  struct Step {
    std::string name, change, label;
    bool operator==(const Step&) const = default;
  };
  struct Merged {
    Json combination;          // level by factor
    size_t configuration = 0;  // the one that it comes to
    std::vector<std::string> why;
    bool operator==(const Merged&) const = default;
  };
  struct Dropped {
    Json combination;
    std::string why;
    bool operator==(const Dropped&) const = default;
  };

  int64_t blocks = 0, trials = 0;
  size_t reference = 0;  // a configuration
  std::string unnamed;   // levels that labels leave out
  std::vector<Configuration> configurations;
  std::vector<Step> waterfall;
  std::vector<Merged> merged;
  std::vector<Dropped> dropped;
  std::optional<double> needed_s;  // by the pilot runs

  Json ToJson() const;
  static Result<StudyDesign> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const StudyDesign&) const = default;
};

// The study file as a journal keeps it, and the parts of it that reports use.
struct StudySettings {
  Json all = Json::object();
  std::string name, question;
  std::string metric;  // of the objective
  bool higher_is_better = true;
  uint64_t seed = 0;
  std::string server_host;  // empty: the second node is a network namespace of this machine

  Json WithoutLists() const;  // without the question, figures, and combinations that are spelled out
  Json ToValue() const { return all; }
  static Result<StudySettings> FromValue(const Json& json);  // kCorrupt names the key
  bool operator==(const StudySettings&) const = default;
};

// The trials of a study or of a configuration by their verdicts.
struct TrialCounts {
  int64_t valid = 0, suspect = 0, invalid = 0, failed = 0, skipped = 0;
  std::optional<int64_t> planned, retried;  // of a study
  bool operator==(const TrialCounts&) const = default;
};

// One metric over the trials that count. Intervals are absent for a single trial.
struct Figures {
  int64_t n = 0;
  double mean = 0;
  std::optional<double> standard_deviation, standard_error;
  std::optional<double> low, high;  // the interval of the mean
  double median = 0;
  std::optional<double> median_low, median_high, median_coverage;
  double min = 0, max = 0;
  bool operator==(const Figures&) const = default;
};

// Figures by metric, in the order in which the trials first had them.
struct FiguresByMetric {
  std::vector<std::pair<std::string, Figures>> all;

  Json ToValue() const;
  static Result<FiguresByMetric> FromValue(const Json& json);  // kCorrupt names the metric and the key
  bool operator==(const FiguresByMetric&) const = default;
};

// A ratio over blocks, with its interval.
struct RatioFigures {
  int64_t n = 0;  // blocks
  double ratio = 0;
  std::optional<double> low, high, log_deviation;
  bool operator==(const RatioFigures&) const = default;
};

// A ratio and the test of it.
struct TestedRatio {
  // Findings.
  static constexpr const char* kHigher = "higher";
  static constexpr const char* kLower = "lower";
  static constexpr const char* kSmall = "small difference";
  static constexpr const char* kNothing = "no difference shown";
  static constexpr const char* kTooFew = "too few";

  RatioFigures ratio;
  double p = 1, adjusted_p = 1;
  std::string told;
  std::optional<double> limit;                // relative: what the interval leaves open
  std::optional<double> smallest_difference;  // relative: what could have been seen
  bool operator==(const TestedRatio&) const = default;
};

// A chart as data. Without `x` it has bars, with it lines.
struct ChartData {
  struct Trial {
    double value = 0;
    bool suspect = false;
    bool operator==(const Trial&) const = default;
  };
  struct Point {
    std::optional<double> x;  // of lines
    std::string name;         // of a bar: the configuration's label
    double mean = 0;
    std::optional<double> low, high;  // the interval of the mean
    int64_t n = 0;
    int64_t suspect = 0;        // of the n
    std::vector<Trial> trials;  // each by itself, where they are at most ten
    bool operator==(const Point&) const = default;
  };
  struct Series {
    std::string name;
    std::vector<Point> points;  // by rising x; bars in the order of the design
    bool operator==(const Series&) const = default;
  };

  // Names of a distribution's axes: the share of the requests that took no longer, over their response time.
  static constexpr const char* kRequestsPercent = "requests_percent";
  static constexpr const char* kResponseTime = "response time";

  std::string title, metric;
  std::string x;  // the factor, or kResponseTime
  std::vector<Series> series;
  bool operator==(const ChartData&) const = default;
};

struct StudyResult {
  struct Options {
    double confidence = 0, margin = 0, alpha = 0, power = 0;
    bool operator==(const Options&) const = default;
  };
  // Two configurations. The ratio is the first over `against`.
  struct Comparison {
    size_t configuration = 0, against = 0;
    std::string metric;
    TestedRatio tested;
    bool operator==(const Comparison&) const = default;
  };
  // The same by labels.
  struct Pair {
    size_t configuration = 0;
    std::string label, against;
    TestedRatio tested;
    bool operator==(const Pair&) const = default;
  };
  struct Answer {
    static constexpr const char* kByPrice = "price_per_million_images";

    std::string metric;     // of the objective
    std::string ranked_by;  // that metric, or kByPrice
    size_t best = 0;
    double mean = 0;
    std::vector<Comparison> others;  // over the best, from the best on
    std::string among;               // "real engines" where the study has emulated accelerators too
    bool operator==(const Answer&) const = default;
  };
  struct Missing {
    std::string metric, wanted_by, nearest;
    bool operator==(const Missing&) const = default;
  };
  struct Bottleneck {
    std::string stage;
    int64_t times = 0, of = 0;    // trials
    std::optional<double> bound;  // images/s
    std::string next;
    std::optional<double> next_bound;  // images/s
    std::optional<RatioFigures> gain;  // absent: not known
    std::string contradiction;         // why the bounds say that it is another part; empty: they do not
    bool operator==(const Bottleneck&) const = default;
  };
  struct AtMost {
    double at_most = 0;
    std::string verdict;  // "met", "missed", "undecided", "not measured"
    bool operator==(const AtMost&) const = default;
  };
  struct AtLeast {
    double at_least = 0;
    std::string verdict;
    bool operator==(const AtLeast&) const = default;
  };
  struct Interval {
    double low = 0;
    std::optional<double> high;  // absent: the interval has no upper end
    bool operator==(const Interval&) const = default;
  };
  struct Targets {
    std::optional<AtMost> p99_ms;
    std::optional<AtLeast> images_per_s;
    std::optional<double> price_per_hour, price_per_million_images;
    std::optional<Interval> price_interval;
    bool operator==(const Targets&) const = default;
  };
  struct Configuration {
    size_t index = 0;
    StudyDesign::Configuration design;  // in JSON its keys stand beside the others
    TrialCounts trials;
    std::string skipped_why;
    FiguresByMetric metrics;
    std::map<std::string, std::map<std::string, int64_t>>
        words;  // "bottleneck" to {"infer": 18, "decode": 2}
    std::optional<Bottleneck> bottleneck;
    bool emulated = false;
    bool most_trials_valid = true;
    Targets targets;
    bool operator==(const Configuration&) const = default;
  };
  struct LevelEffect {
    std::string factor, level;
    int64_t pairs = 0;
    TestedRatio tested;
    bool operator==(const LevelEffect&) const = default;
  };
  struct Effect {
    // How it acts.
    static constexpr const char* kAlike = "alike";
    static constexpr const char* kByLevel = "differently by level";
    static constexpr const char* kOpposite = "in opposite directions";

    std::string factor, from, to, metric;
    int64_t pairs = 0;
    std::string acts = kAlike;
    int64_t pairs_higher = 0, pairs_lower = 0;
    TestedRatio tested;
    std::optional<Pair> least, most;
    std::vector<LevelEffect> by_level;
    bool operator==(const Effect&) const = default;
  };
  struct ArchitecturePair {
    std::string from, to, at;
    Pair pair;  // in JSON its keys stand beside the others
    bool operator==(const ArchitecturePair&) const = default;
  };
  struct VarianceTerm {
    std::vector<std::string> factors;
    int64_t degrees = 0;
    double f = 0, p = 1, adjusted_p = 1, share = 0;
    bool operator==(const VarianceTerm&) const = default;
  };
  // A term that cannot be significantly different from others in part or in whole.
  struct AliasedTerm {
    std::vector<std::string> factors;
    int64_t degrees = 0, own_degrees = 0;     // of freedom: with all others in the model, and by its levels
    std::vector<std::string> with;            // the factors that it cannot be told from
    std::vector<std::string> not_applicable;  // those of them that some configurations do not have
    bool operator==(const AliasedTerm&) const = default;
  };
  struct Variance {
    std::string metric;
    int64_t trials = 0;
    std::string left_out;  // why there is no table; the others are absent then
    std::optional<int64_t> residual_degrees;
    std::optional<double> residual_deviation, normality_p, durbin_watson;
    std::optional<std::vector<VarianceTerm>> terms;
    std::vector<AliasedTerm> aliased;
    bool operator==(const Variance&) const = default;
  };
  struct Milliseconds {
    double mean_ms = 0;
    std::optional<double> low_ms, high_ms;
    bool operator==(const Milliseconds&) const = default;
  };
  struct WaterfallStep {
    std::string name, change;
    size_t configuration = 0;
    int64_t blocks = 0;
    double total_ms = 0, p = 1, adjusted_p = 1;
    Milliseconds step;                  // in JSON its keys stand beside the others
    std::optional<Milliseconds> whole;  // the time up to here by itself, with its own interval
    bool by_events = false;  // a part of the first combination's time, measured by a device's events
    bool operator==(const WaterfallStep&) const = default;
  };
  struct Waterfall {
    std::string left_out;  // why there is none; the others are absent then
    std::optional<std::vector<WaterfallStep>> steps;
    std::optional<std::vector<std::string>> missing;
    std::optional<Milliseconds> added;
    bool operator==(const Waterfall&) const = default;
  };
  // A phase with all others beside it, over the same phase alone.
  struct PhaseKept {
    std::string phase, metric, limits;
    size_t configuration = 0, against = 0;
    double alone = 0, together = 0;  // means
    TestedRatio tested;
    bool operator==(const PhaseKept&) const = default;
  };
  struct Phases {
    std::vector<PhaseKept> kept;
    std::string recommended;  // limits
    std::optional<double> least_kept;
    std::string why_not;  // why none are recommended
    bool operator==(const Phases&) const = default;
  };
  struct Outlier {
    size_t configuration = 0;
    std::string label;
    int64_t block = 0, position = 0;  // from 0
    double value = 0, ratio = 1, t = 0, p = 1;
    std::string evidence;
    bool operator==(const Outlier&) const = default;
  };
  struct RestlessBlock {
    int64_t block = 0;  // from 0
    double ratio = 1;
    std::string evidence;
    bool operator==(const RestlessBlock&) const = default;
  };
  struct Trend {
    double rho = 0, p_value = 1;
    bool operator==(const Trend&) const = default;
  };
  struct Drift {
    std::string metric;
    int64_t blocks = 0;
    bool flagged = false, shown = false;
    std::optional<double> change, low, high, limit;  // relative
    std::optional<RatioFigures> within_block;
    std::optional<Trend> trend;
    std::vector<RestlessBlock> restless_blocks;
    bool operator==(const Drift&) const = default;
  };
  // One try of one trial.
  struct Row {
    std::string id;
    int64_t attempt = 1;
    bool counts = false;
    size_t configuration = 0;
    std::string label;
    int64_t block = 0, position = 0;  // from 0
    std::string role;
    uint64_t seed = 0;
    double took_s = 0;
    Json levels = Json::object();  // text by factor
    Verdict verdict;
    Json metrics = Json::object();  // number or word by flat name
    std::string command;
    std::string server_command;  // starts the trial's server by hand; empty: absent
    bool operator==(const Row&) const = default;
  };
  // The same configuration in two studies. What one of them did not measure is absent.
  struct ComparedConfiguration {
    std::string label;
    std::optional<Figures> before, now;
    std::optional<TestedRatio> tested;  // now over before; in JSON its keys stand beside the others
    bool operator==(const ComparedConfiguration&) const = default;
  };
  struct Compared {
    std::string metric;
    std::vector<std::string> differences;
    std::vector<ComparedConfiguration> configurations;
    std::vector<std::string> only_before, only_now;  // labels
    bool operator==(const Compared&) const = default;
  };

  StudySettings study;
  Json provenance = Json::object();  // as the journal has it: StudyProvenance::ToJson
  Options options;
  TrialCounts trials;
  int64_t blocks = 0;
  size_t reference = 0;  // a configuration
  std::string unnamed;   // levels that labels leave out
  std::vector<Answer> answers;
  std::string no_answer;  // why there is none
  std::vector<ChartData> figures, latency_figures, memory_figures, stability_figures;
  std::vector<Missing> missing_metrics;
  std::vector<Configuration> configurations;
  std::vector<Comparison> comparisons;
  std::vector<Effect> effects;
  std::vector<ArchitecturePair> architectures;
  Variance variance;
  std::optional<Waterfall> waterfall;
  std::optional<Phases> phases;
  std::vector<Outlier> outliers;
  std::string outliers_left_out;
  Drift drift;
  std::vector<StudyDesign::Merged> merged;
  std::vector<StudyDesign::Dropped> dropped;
  std::vector<Row> rows;
  std::optional<Compared> compared;

  const std::string& label(size_t index) const { return configurations[index].design.label; }
  // Returns null where the metric was not measured.
  const Figures* FindFigures(size_t index, std::string_view metric) const;
  // Returns the configuration over the reference; null where there is none.
  const Comparison* FindComparison(size_t index, std::string_view metric) const;
  // Returns the commonest word of a metric, and how often it was said: {"decode", 18, 20}.
  struct Word {
    std::string word;
    int64_t times = 0, of = 0;
  };
  std::optional<Word> CommonestWord(size_t index, const std::string& metric) const;
  std::string command() const;   // of the provenance; may be empty
  std::string build_id() const;  // "unknown" where the provenance has none

  Json ToJson() const;
  // kCorrupt names the key; kUnsupported for another schema_version.
  static Result<StudyResult> FromJson(const Json& json);
  bool operator==(const StudyResult&) const = default;
};

}  // namespace weir::results
