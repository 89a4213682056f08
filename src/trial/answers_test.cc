#include "trial/answers.h"

#include <gmock/gmock.h>

namespace weir::trial {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kText =
    "file,status,rank,class,label,score,reason\n"
    "a,ok,1,3,x,0.5,\na,ok,2,4,y,0.1,\nb,rejected,,,,,truncated\nc,ok,1,5,\"z, z\",0.5,\n";

TEST(Answers, AreTheBestClassOfEachPicture) {
  EXPECT_THAT(ReadAnswers(kText)->best, ElementsAre("3", "rejected", "5"));
  EXPECT_THAT(ReadAnswers("a,b\n1,2\n").error().message, HasSubstr("lacks"));
  EXPECT_FALSE(ReadAnswers(""));
}

TEST(Answers, AreComparedOverAllPasses) {
  const Answers reference{{"1", "2", "rejected"}};
  EXPECT_EQ(CountDifferences(reference, reference).value(), 0);
  EXPECT_EQ(CountDifferences(reference, {{"1", "2", "rejected", "1", "9", "3"}}).value(), 2);
  EXPECT_THAT(CountDifferences(reference, {{"1", "2"}}).error().message, HasSubstr("answered 2 pictures"));
  EXPECT_FALSE(CountDifferences(reference, {}));
}

}  // namespace
}  // namespace weir::trial
