#include "oip/status.h"

#include <gtest/gtest.h>

#include <array>

#include "base/json.h"

namespace weir::oip {
namespace {

constexpr std::array kAll{
    ErrorCode::kInvalidArgument, ErrorCode::kNotFound,    ErrorCode::kOverloaded, ErrorCode::kDeadline,
    ErrorCode::kCancelled,       ErrorCode::kUnsupported, ErrorCode::kIo,         ErrorCode::kCorrupt,
    ErrorCode::kInternal};

TEST(Status, EveryFaultOfTheClientIsA4xxAndNeverA5xx) {
  EXPECT_EQ(HttpStatus(ErrorCode::kInvalidArgument, Compat::kNone), 400);
  EXPECT_EQ(HttpStatus(ErrorCode::kCorrupt, Compat::kNone), 400);
  EXPECT_EQ(HttpStatus(ErrorCode::kNotFound, Compat::kNone), 404);
  EXPECT_EQ(HttpStatus(ErrorCode::kCancelled, Compat::kNone), 499);
  EXPECT_EQ(HttpStatus(ErrorCode::kOverloaded, Compat::kNone), 503);
  EXPECT_EQ(HttpStatus(ErrorCode::kDeadline, Compat::kNone), 503);
  EXPECT_EQ(HttpStatus(ErrorCode::kUnsupported, Compat::kNone), 501);
  EXPECT_EQ(HttpStatus(ErrorCode::kInternal, Compat::kNone), 500);
}

TEST(Status, TritonAnswers400WhereTheClientHasLeft) {
  for (const ErrorCode code : kAll) {
    if (code == ErrorCode::kCancelled) {
      EXPECT_EQ(HttpStatus(code, Compat::kTriton), 400);
    } else {
      EXPECT_EQ(HttpStatus(code, Compat::kTriton), HttpStatus(code, Compat::kNone));
    }
  }
}

TEST(Status, GrpcHasTheSameTable) {
  EXPECT_EQ(GrpcStatus(ErrorCode::kInvalidArgument, Compat::kNone), 3);
  EXPECT_EQ(GrpcStatus(ErrorCode::kCorrupt, Compat::kNone), 3);
  EXPECT_EQ(GrpcStatus(ErrorCode::kNotFound, Compat::kNone), 5);
  EXPECT_EQ(GrpcStatus(ErrorCode::kCancelled, Compat::kNone), 1);
  EXPECT_EQ(GrpcStatus(ErrorCode::kUnsupported, Compat::kNone), 12);
  EXPECT_EQ(GrpcStatus(ErrorCode::kOverloaded, Compat::kTriton), 14);
  EXPECT_EQ(GrpcStatus(ErrorCode::kDeadline, Compat::kTriton), 14);
  EXPECT_EQ(GrpcStatus(ErrorCode::kIo, Compat::kNone), 13);
}

TEST(Status, WhatAClientReadsIsWhatTheServerMeant) {
  for (const ErrorCode code : {ErrorCode::kInvalidArgument, ErrorCode::kNotFound, ErrorCode::kOverloaded,
                               ErrorCode::kCancelled, ErrorCode::kUnsupported, ErrorCode::kInternal}) {
    EXPECT_EQ(FromHttpStatus(HttpStatus(code, Compat::kNone)), code);
    EXPECT_EQ(FromGrpcStatus(GrpcStatus(code, Compat::kNone)), code);
  }
}

TEST(Status, CodesOfOtherServersAreUnderstood) {
  EXPECT_EQ(FromHttpStatus(429), ErrorCode::kOverloaded);
  EXPECT_EQ(FromHttpStatus(504), ErrorCode::kDeadline);
  EXPECT_EQ(FromHttpStatus(422), ErrorCode::kInvalidArgument);
  EXPECT_EQ(FromHttpStatus(413), ErrorCode::kInvalidArgument);
  EXPECT_EQ(FromHttpStatus(302), ErrorCode::kInternal);
  EXPECT_EQ(FromGrpcStatus(4), ErrorCode::kDeadline);
  EXPECT_EQ(FromGrpcStatus(8), ErrorCode::kOverloaded);
  EXPECT_EQ(FromGrpcStatus(99), ErrorCode::kInternal);
}

}  // namespace
}  // namespace weir::oip
