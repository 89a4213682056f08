#include "dataset/fetch.h"

#include <gtest/gtest.h>

#include "base/thread.h"

namespace weir::dataset {
namespace {

// Port 1 of this machine: nothing listens there, and whoever asks may try again.
constexpr const char* kNobody = "http://127.0.0.1:1/a.jpg";

TEST(Fetch, AStopEndsTheWaitForTheNextTry) {
  std::stop_source stop;
  image::Accepted<Bytes> got;
  {
    // A hundred retries would take over an hour.
    const std::jthread thread = StartThread("fetch", [&](const std::stop_token&) {
      got = Fetch(kNobody, 100, {.retries = 100, .stop = stop.get_token()});
    });
    stop.request_stop();
  }
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().reason, image::RejectReason::kUnreachable);
}

TEST(Fetch, WhatWillNotPassIsNotTriedAgain) {
  const auto got = Fetch("http://[wrong/a.jpg", 100, {.retries = 100});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().reason, image::RejectReason::kUnreachable);
}

}  // namespace
}  // namespace weir::dataset
