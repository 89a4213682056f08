#include "predict/applicability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
    known_ = Applicability::Learn(data_);
  }

  Applicability::Place Ask(const std::string& row) const {
    const Table asked(*ParseCsv("row_id,gpu,network,batch,gpu_count,precision\nq," + row + "\n"));
    return known_.PlaceOf(data_.spec, data_.encoder, facts_,
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
  const auto place = Measured().Ask("gpu-c,middle,32,2,fp32");
  EXPECT_EQ(place.outside, "");
  EXPECT_EQ(place.question, Question::kInside);
  EXPECT_EQ(place.widen, 1);
}

TEST(Applicability, TakesNoCountFromOneRowAlone) {
  const auto place = Measured().Ask("gpu-c,middle,32,8,fp32");
  EXPECT_THAT(place.outside, HasSubstr("gpu_count 8 is above 4"));
  EXPECT_EQ(place.question, Question::kCount);
}

TEST(Applicability, NamesAWordThatWasNeverMeasuredAndThoseThatWere) {
  const auto place = Measured().Ask("gpu-c,middle,32,2,int3");
  EXPECT_THAT(place.outside, HasSubstr("precision \"int3\" was never measured, only fp32"));
  EXPECT_TRUE(place.is_unheard);
}

TEST(Applicability, NamesTheNearestHardwareAndHowFarItIs) {
  const auto place = Measured().Ask("gpu-new,middle,32,2,fp32");
  // 120 / 60 TFLOPS and 2000 / 700 GB/s.
  EXPECT_THAT(place.outside,
              HasSubstr("gpu-new was never measured, gpu-d is nearest: 2.9 times off at most (bandwidth)"));
  EXPECT_EQ(place.question, Question::kHardware);
}

TEST(Applicability, RefusesWhatIsAThousandTimesBeyond) {
  EXPECT_FALSE(Measured().Ask("gpu-c,middle,6400,2,fp32").is_refused);
  EXPECT_TRUE(Measured().Ask("gpu-c,middle,640000,2,fp32").is_refused);
  EXPECT_TRUE(Measured().Ask("gpu-c,middle,32,40000,fp32").is_refused);
}

TEST(Applicability, IsTheSameAfterItWasKept) {
  const Measured measured;
  const Json json = measured.known().ToJson();
  const auto again = Applicability::FromJson(json, measured.data().spec);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->ToJson(), json);
}

}  // namespace
}  // namespace weir::predict
