#include "serve/complete_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::serve {
namespace {

using testing::HasSubstr;

TEST(CompleteOptions, OneAddressGoesBeforeThatOfAll) {
  ServerOptions options;
  ASSERT_TRUE(CompleteOptions({.address = "0.0.0.0", .grpc_address = "127.0.0.2"}, options));
  EXPECT_EQ(options.http.address, "0.0.0.0");
  EXPECT_EQ(options.grpc.address, "127.0.0.2");
  EXPECT_EQ(options.metrics.address, "0.0.0.0");
  EXPECT_EQ(options.http.port, 8000);
}

TEST(CompleteOptions, AServerThatIsNotWantedHasNoPort) {
  ServerOptions options;
  ASSERT_TRUE(CompleteOptions({.http = false, .metrics = false}, options));
  EXPECT_LT(options.http.port, 0);
  EXPECT_EQ(options.grpc.port, 8001);
  EXPECT_LT(options.metrics.port, 0);
}

TEST(CompleteOptions, RefusesPollingOfAnObjectStore) {
  ServerOptions options{.repositories = {"s3://bucket/models"}, .control = Repository::Control::kPoll};
  const Status status = CompleteOptions({}, options);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(status.error().message, HasSubstr("s3://bucket/models"));
}

TEST(CompleteOptions, ModelsToLoadWantExplicitControl) {
  ServerOptions options{.load = {"resnet50"}};
  EXPECT_THAT(CompleteOptions({}, options).error().message, HasSubstr("--model-control-mode explicit"));
  options.control = Repository::Control::kExplicit;
  EXPECT_TRUE(CompleteOptions({}, options));
}

}  // namespace
}  // namespace weir::serve
