// The statistics of a study of 20 blocks, against scipy 1.17.1 and numpy 2.4.6. With a, b the two lists
// below, n = 20, from scipy import stats and import numpy as np:
//   mean, deviation      np.mean(a), np.std(a, ddof=1)
//   standard error       stats.sem(a)
//   interval             stats.t.interval(0.95, n - 1, loc=np.mean(a), scale=stats.sem(a))
//   median, interval     np.median(a), stats.quantile_test(a, q=np.median(a),
//   p=0.5).confidence_interval(0.95) its coverage         1 - 2 * stats.binom.cdf(5, n, 0.5) ratio
//   stats.gmean(b / a), exp of stats.ttest_rel(log(b), log(a)).confidence_interval(0.95) smallest difference
//   expm1((stats.t.ppf(0.975, n - 1) + stats.t.ppf(0.8, n - 1)) *
//                        np.std(log(b / a), ddof=1) / sqrt(n))
//   change, interval     f = stats.linregress(range(n), log(a)), expm1(19 * f.slope),
//                        expm1(19 * (f.slope -+ stats.t.ppf(0.975, n - 2) * f.stderr))
//   trend                stats.spearmanr(range(n), a)
#include <gtest/gtest.h>

#include <vector>

#include "study/result.h"

namespace weir::study {
namespace {

const std::vector<double> kA{451.2, 448.7, 455.9, 449.3, 452.8, 447.1, 458.4, 450.6, 453.3, 446.2,
                             449.9, 454.7, 451.8, 445.5, 456.1, 452.2, 448.1, 450.3, 457.6, 449.0};
const std::vector<double> kB{458.3, 455.0, 461.7, 457.9, 459.2, 452.6, 464.8, 458.1, 459.9, 455.4,
                             456.3, 462.2, 457.7, 452.9, 463.5, 459.6, 455.8, 456.9, 463.1, 456.0};

// The result, as programs read it, of a study whose first configuration measured kA (its drift controls too)
// and whose second measured kB.
Json TwentyBlocks() {
  const auto study =
      ParseStudy("study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 8]}\nrepeats: 20\n").value();
  const auto design = MakeDesign(study).value();
  StudyJournal journal{.header = {.study = study.ToJson(), .provenance = Json::object()}, .played = {}};
  for (const Trial& trial : design.trials) {
    PlayedTrials played{.trial = trial};
    played.record.factors = design.configurations[trial.configuration].factors;
    const auto block = static_cast<size_t>(trial.block);
    played.record.metrics = {{"throughput_images_per_s", trial.configuration == 0 ? kA[block] : kB[block]}};
    journal.played.push_back(std::move(played));
  }
  const Json result =
      MakeResult({.study = study, .design = design, .journal = journal, .options = {}}).ToJson();
  return ParseJson(DumpJson(result)).value();
}

void ExpectNear(const Json& figures, const std::vector<std::pair<const char*, double>>& wanted) {
  for (const auto& [key, value] : wanted) {
    ASSERT_TRUE(figures.contains(key)) << key;
    EXPECT_NEAR(figures[key].get<double>(), value, 1e-9) << key;
  }
}

TEST(Numbers, OfAConfigurationAreThoseOfScipy) {
  const Json result = TwentyBlocks();
  ExpectNear(result["configurations"][0]["metrics"]["throughput_images_per_s"],
             {{"n", 20},
              {"mean", 451.43500000000006},
              {"standard_deviation", 3.698118298184687},
              {"standard_error", 0.8269243903576797},
              {"low", 449.7042273598045},
              {"high", 453.1657726401956},
              {"median", 450.9},
              {"median_low", 449.0},
              {"median_high", 453.3},
              {"median_coverage", 0.9586105346679688}});
  ExpectNear(result["configurations"][1]["metrics"]["throughput_images_per_s"],
             {{"mean", 458.3450000000001},
              {"standard_deviation", 3.4269020842062083},
              {"standard_error", 0.766278601252079},
              {"low", 456.7411604552011},
              {"high", 459.94883954479906},
              {"median", 458.0},
              {"median_low", 456.0},
              {"median_high", 459.9}});
}

TEST(Numbers, OfAComparisonAreThoseOfScipy) {
  const Json result = TwentyBlocks();
  ASSERT_EQ(result["comparisons"].size(), 1u);
  ExpectNear(result["comparisons"][0], {{"n", 20},
                                        {"ratio", 1.0153121248501689},
                                        {"low", 1.0142830424857916},
                                        {"high", 1.0163422513121683},
                                        {"log_deviation", 0.002166763577722024},
                                        {"smallest_difference", 0.0014322344196361781}});
  EXPECT_EQ(result["comparisons"][0]["told"], "small difference");
}

TEST(Numbers, OfTheDriftAreThoseOfScipy) {
  const Json drift = TwentyBlocks()["drift"];
  ExpectNear(
      drift,
      {{"change", 0.00023779226405840217}, {"low", -0.012693339952862107}, {"high", 0.013338288455899829}});
  ExpectNear(drift["trend"], {{"rho", -0.004511278195488721}, {"p_value", 0.9849400483404017}});
}

}  // namespace
}  // namespace weir::study
