#include "predict/interval/applicability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "predict/predictor_file.h"
#include "predict/testing/made_set.h"

namespace weir::predict {
namespace {

using testing::HasSubstr;

// The made set, with one row more of a count that nobody meant.
class Measured {
 public:
  Measured() {
    const MadeSet made = MadeSet::Make();
    facts_ = {.hardware = *Table::WithKey(*ParseCsv(made.hardware), "gpu"),
              .networks = *Table::WithKey(*ParseCsv(made.networks), "network")};
    Spec spec = *ParseSpec(made.spec);
    const Table rows(*ParseCsv(made.rows + "slip,gpu-a,small,32,4000,fp32,1000\n"));
    auto made_rows = *MakeRows(spec, facts_, rows, WithTarget::kYes);
    data_ = Data::Make(std::move(spec), std::move(made_rows));
    known_ = Applicability::Learn(data_, facts_, {});
  }

  Applicability::Position Ask(const std::string& row) const {
    const Table asked(*ParseCsv("row_id,gpu,network,batch,gpu_count,precision\nq," + row + "\n"));
    return known_.PositionOf(data_.spec, data_.encoder,
                             MakeRows(data_.spec, facts_, asked, WithTarget::kNo)->front());
  }

  const Data& data() const { return data_; }
  const Applicability& known() const { return known_; }

 private:
  Facts facts_;
  Data data_;
  Applicability known_;
};

TEST(Applicability, FindsWhatWasMeasuredInside) {
  const auto position = Measured().Ask("gpu-c,middle,32,2,fp32");
  EXPECT_EQ(position.outside, "");
  EXPECT_EQ(position.split, Split::kInside);
  EXPECT_EQ(position.widen, 1);
}

TEST(Applicability, TakesNoCountFromOneRowAlone) {
  const auto position = Measured().Ask("gpu-c,middle,32,8,fp32");
  EXPECT_THAT(position.outside, HasSubstr("gpu_count 8 is above 4"));
  EXPECT_EQ(position.split, Split::kCount);
}

TEST(Applicability, NamesAWordThatWasNeverMeasuredAndThoseThatWere) {
  const auto position = Measured().Ask("gpu-c,middle,32,2,int3");
  EXPECT_THAT(position.outside, HasSubstr("precision \"int3\" was never measured, only fp32"));
  EXPECT_TRUE(position.is_unvalidated);
}

TEST(Applicability, NamesTheNearestHardwareAndHowFarItIs) {
  const auto position = Measured().Ask("gpu-new,middle,32,2,fp32");
  // 120 / 60 TFLOPS and 2000 / 700 GB/s.
  EXPECT_THAT(position.outside,
              HasSubstr("gpu-new was never measured, gpu-d is nearest: 2.9 times off at most (bandwidth)"));
  EXPECT_EQ(position.split, Split::kHardware);
}

TEST(Applicability, RefusesWhatIsAThousandTimesBeyond) {
  EXPECT_EQ(Measured().Ask("gpu-c,middle,6400,2,fp32").refusal, "");
  EXPECT_NE(Measured().Ask("gpu-c,middle,640000,2,fp32").refusal, "");
  EXPECT_NE(Measured().Ask("gpu-c,middle,32,40000,fp32").refusal, "");
}

// New hardware comes with new software only if the folds showed that.
TEST(Applicability, AnUnseenWordOnUnseenHardwareIsOutsideToo) {
  const auto position = Measured().Ask("gpu-new,middle,32,2,int3");
  EXPECT_THAT(position.outside, HasSubstr("gpu-new was never measured"));
  EXPECT_THAT(position.outside, HasSubstr("precision \"int3\" was never measured"));
  EXPECT_EQ(position.split, Split::kHardware);
  EXPECT_TRUE(position.is_unvalidated);
}

// A set whose SPEC and tables are changed before it is measured.
class Changed {
 public:
  explicit Changed(const std::function<void(MadeSet&)>& change, const std::vector<Kink>& kinks = {}) {
    MadeSet made = MadeSet::Make();
    change(made);
    facts_ = {.hardware = *Table::WithKey(*ParseCsv(made.hardware), "gpu"),
              .networks = *Table::WithKey(*ParseCsv(made.networks), "network")};
    Spec spec = *ParseSpec(made.spec);
    auto rows = *MakeRows(spec, facts_, Table(*ParseCsv(made.rows)), WithTarget::kYes);
    data_ = Data::Make(std::move(spec), std::move(rows));
    known_ = Applicability::Learn(data_, facts_, kinks);
  }
  Applicability::Position Ask(const std::string& columns, const std::string& row) const {
    const Table asked(
        *ParseCsv("row_id,gpu,network,batch,gpu_count,precision" + columns + "\nq," + row + "\n"));
    return known_.PositionOf(data_.spec, data_.encoder,
                             MakeRows(data_.spec, facts_, asked, WithTarget::kNo)->front());
  }
  Data& data() { return data_; }
  Applicability& known() { return known_; }

 private:
  Facts facts_;
  Data data_;
  Applicability known_;
};

void Replace(std::string& text, const std::string& from, const std::string& to) {
  ASSERT_NE(text.find(from), std::string::npos) << from;
  text.replace(text.find(from), from.size(), to);
}

TEST(Applicability, AWordThatTheFoldsShowedAsNewIsOutsideWithAValidatedInterval) {
  Changed changed([](MadeSet& set) {
    // Each GPU has a precision of its own.
    for (const char gpu : std::string("abcdef")) {
      const std::string name = std::string("gpu-") + gpu;
      for (size_t at = 0; (at = set.rows.find("," + name + ",", at)) != std::string::npos;) {
        const size_t end = set.rows.find('\n', at), word = set.rows.find(",fp32,", at);
        ASSERT_LT(word, end);
        set.rows.replace(word, 6, std::string(",p") + gpu + ",");
        at = end;
      }
    }
  });
  changed.known().LearnNewWords(changed.data(), Split::kHardware,
                                MakeFolds(changed.data().rows, Split::kHardware, Seed(1)));
  const auto position = changed.Ask("", "gpu-new,middle,32,2,int3");
  EXPECT_THAT(position.outside, HasSubstr("precision \"int3\" was never measured"));
  EXPECT_FALSE(position.is_unvalidated);
  EXPECT_TRUE(changed.Ask("", "gpu-a,middle,32,2,int3").is_unvalidated);
}

TEST(Applicability, AnotherVendorIsOutsideAndWider) {
  const Changed changed([](MadeSet& set) {
    set.hardware = "gpu,tflops,bandwidth,vendor\n";
    for (const char* gpu : {"gpu-a", "gpu-b", "gpu-c", "gpu-d", "gpu-e", "gpu-f"})
      set.hardware += std::string(gpu) + ",10,300,one\n";
    set.hardware += "gpu-new,20,400,two\nkin,20,400,one\n";
  });
  const auto other = changed.Ask("", "gpu-new,middle,32,2,fp32");
  EXPECT_THAT(other.outside, HasSubstr("hardware of two was never measured, only of one"));
  EXPECT_TRUE(other.is_unvalidated);
  EXPECT_GT(other.widen, 1);
  EXPECT_FALSE(changed.Ask("", "kin,middle,32,2,fp32").is_unvalidated);
}

TEST(Applicability, RefusesANetworkThatNoTermLooksAt) {
  const Changed changed([](MadeSet& set) {
    Replace(set.spec, "terms: {compute: work / tflops, memory: moved / bandwidth, step: 1 / batch}",
            "terms: {compute: 1 / tflops, step: 1 / batch}");
    set.networks += "huge,9000,9000\n";
  });
  EXPECT_THAT(changed.Ask("", "gpu-a,huge,32,2,fp32").refusal, HasSubstr("no term of the physical model"));
  EXPECT_EQ(changed.Ask("", "gpu-a,wide,32,2,fp32").refusal, "");
}

TEST(Applicability, SaysWhatDoesNotFitInMemory) {
  const Changed changed([](MadeSet& set) {
    Replace(set.spec, "ranges: [batch]",
            "memory: {capacity: 10 * 1, weights: gflops / 100, kept: batch / 10}");
  });
  EXPECT_EQ(changed.Ask("", "gpu-a,small,64,1,fp32").outside, "");
  const auto perhaps = changed.Ask("", "gpu-a,small,120,1,fp32");
  EXPECT_THAT(perhaps.outside,
              HasSubstr("may need about 12 GB of memory a device (weights 0.02, kept 12), it "
                        "has 10: it may not fit"));
  EXPECT_EQ(perhaps.refusal, "");
  EXPECT_GT(perhaps.widen, 1);
  EXPECT_THAT(changed.Ask("", "gpu-a,small,4096,1,fp32").refusal, HasSubstr("it does not fit"));
}

TEST(Applicability, AKinkBetweenCountsWidensLargerCounts) {
  const Changed changed([](MadeSet&) {}, {{.hardware = "gpu-a", .machine = "m", .factor = 1.7, .rows = {}}});
  const auto beyond = changed.Ask("", "gpu-a,small,32,8,fp32");
  EXPECT_THAT(beyond.outside, HasSubstr("measured times of gpu-a jump by up to 1.7 times between counts"));
  EXPECT_NEAR(beyond.add, std::log(1.7), 1e-12);
  EXPECT_EQ(changed.Ask("", "gpu-b,small,32,8,fp32").add, 0);
}

TEST(Applicability, AnOptionalColumnIsNamedWhereItMatters) {
  const Changed changed([](MadeSet& set) { set.spec += "optional: {network_gbit_per_s: gpu_count > 2}\n"; });
  EXPECT_EQ(changed.Ask("", "gpu-a,small,32,2,fp32").outside, "");
  EXPECT_THAT(changed.Ask("", "gpu-a,small,32,4,fp32").outside, HasSubstr("network_gbit_per_s is not given"));
  EXPECT_EQ(changed.Ask(",network_gbit_per_s", "gpu-a,small,32,4,fp32,100").outside, "");
}

TEST(Applicability, ARowThatContradictsItselfIsOutside) {
  const Changed changed(
      [](MadeSet& set) { set.spec += "expect: {a batch for each device: batch >= gpu_count}\n"; });
  EXPECT_EQ(changed.Ask("", "gpu-a,small,8,4,fp32").outside, "");
  const auto position = changed.Ask("", "gpu-a,small,7,8,fp32");
  EXPECT_THAT(position.outside, HasSubstr("the row contradicts \"a batch for each device\" of the SPEC"));
  EXPECT_TRUE(position.is_unvalidated);
}

TEST(Applicability, IsTheSameAfterItWasKept) {
  const Measured measured;
  const Json json = FieldsToJson(measured.known());
  const auto again = FieldsFromJson<Applicability>(json);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(FieldsToJson(*again), json);
}

}  // namespace
}  // namespace weir::predict
