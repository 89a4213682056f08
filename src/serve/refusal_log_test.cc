#include "serve/refusal_log.h"

#include <gtest/gtest.h>

namespace weir::serve {
namespace {

TEST(RefusalLog, TellsTheFirstOfEachReasonAndThenOneInTenSeconds) {
  RefusalLog log;
  const Instant start(100s);
  const auto first = log.Tell(wire::GrpcRefusal::kConnections, "10.0.0.1", start);
  ASSERT_TRUE(first);
  EXPECT_EQ(*first,
            "gRPC, 10.0.0.1: a connection was refused: all connections are taken; raise --max-connections");
  for (int i = 0; i < 1000; ++i)
    EXPECT_FALSE(log.Tell(wire::GrpcRefusal::kConnections, "10.0.0.1", start + i * 9ms));
  EXPECT_TRUE(log.Tell(wire::GrpcRefusal::kStalled, "10.0.0.2", start + 1s)) << "another reason";
  const auto later = log.Tell(wire::GrpcRefusal::kConnections, "10.0.0.3", start + 10s);
  ASSERT_TRUE(later);
  EXPECT_NE(later->find("10.0.0.3"), std::string::npos);
  EXPECT_NE(later->find("(1000 more since the last line)"), std::string::npos);
}

}  // namespace
}  // namespace weir::serve
