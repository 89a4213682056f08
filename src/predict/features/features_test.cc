// Facts that the rows of a fit give of their hardware and networks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predict/features/hardware_terms.h"
#include "predict/features/network_facts.h"
#include "predict/testing/made_set.h"

namespace weir::predict {
namespace {

using testing::ElementsAre;

void Replace(std::string& text, const std::string& from, const std::string& to) {
  ASSERT_NE(text.find(from), std::string::npos) << from;
  text.replace(text.find(from), from.size(), to);
}

std::vector<OneHardwareTerm> Found(const std::string& term) {
  MadeSet made = MadeSet::Make();
  Replace(made.spec, "step: 1 / batch}", "step: 1 / batch, more: '" + term + "'}");
  const Spec spec = *ParseSpec(made.spec);
  const Facts facts{.hardware = *Table::WithKey(*ParseCsv(made.hardware), "gpu"),
                    .networks = *Table::WithKey(*ParseCsv(made.networks), "network")};
  const Table table(*ParseCsv(made.rows));
  return *FindOneHardwareTerms(spec, facts, table, *MakeRows(spec, facts, table, WithTarget::kYes));
}

TEST(FindOneHardwareTerms, FindsATermThatIsConstantOnAllHardwareButOne) {
  const auto found = Found("if(tflops > 50, 1, 0) * batch");  // gpu-d alone
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].term, "more");
  EXPECT_EQ(found[0].hardware, "gpu-d");
}

TEST(FindOneHardwareTerms, LeavesTermsThatSeparateTwoKindsOrAllOrNone) {
  EXPECT_TRUE(Found("if(tflops > 40, 1, 0)").empty());  // gpu-d and gpu-f
  EXPECT_TRUE(Found("batch / bandwidth").empty());
  EXPECT_TRUE(Found("batch").empty());
}

TEST(ColumnsBehind, GoThroughDerivedColumns) {
  const Spec spec = *ParseSpec(MadeSet::Make().spec);
  EXPECT_THAT(ColumnsBehind(spec, spec.terms[0].expression), ElementsAre("gflops", "tflops"));
}

TEST(NetworkFactsOf, AreTheCellsThatTheRowsOfANetworkAgreeOn) {
  std::string text = MadeSet::Make().spec;
  Replace(text, "networks: {file: networks.csv, key: network}", "networks: {key: network}");
  const Spec spec = *ParseSpec(text);
  const Table rows(
      *ParseCsv("row_id,gpu,network,batch,gpu_count,gflops,moved\n"
                "a,g,small,8,1,2,50\nb,g,small,9,1,2,51\nc,g,large,9,1,40,300\n"));
  const auto facts = NetworkFactsOf(spec, rows);
  ASSERT_TRUE(facts.has_value()) << facts.error().message;
  EXPECT_THAT(facts->csv().columns, ElementsAre("network", "gflops", "moved"));  // batch is no fact of it
  EXPECT_EQ(facts->Cell(facts->RowOf("small"), 1), "2");
  EXPECT_EQ(facts->Cell(facts->RowOf("small"), 2), "");
  EXPECT_EQ(facts->Cell(facts->RowOf("large"), 2), "300");
}

TEST(TermsUseNetwork, LooksThroughDerivedColumns) {
  const MadeSet made = MadeSet::Make();
  const Facts facts{.hardware = *Table::WithKey(*ParseCsv(made.hardware), "gpu"),
                    .networks = *Table::WithKey(*ParseCsv(made.networks), "network")};
  EXPECT_TRUE(TermsUseNetwork(*ParseSpec(made.spec), facts));
  std::string text = made.spec;
  Replace(text, "terms: {compute: work / tflops, memory: moved / bandwidth, step: 1 / batch}",
          "terms: {compute: 1 / tflops, step: 1 / batch}");
  EXPECT_FALSE(TermsUseNetwork(*ParseSpec(text), facts));
}

}  // namespace
}  // namespace weir::predict
