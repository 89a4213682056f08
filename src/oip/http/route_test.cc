#include "oip/http/route.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::oip {
namespace {

using enum HttpAction;

TEST(HttpRoute, EveryRouteOfTheProtocolIsFound) {
  const struct {
    const char* verb;
    const char* path;
    HttpRoute route;
  } table[] = {
      {"GET", "/v2", {kServerMetadata}},
      {"GET", "/v2/", {kServerMetadata}},
      {"GET", "/v2/health/live", {kServerLive}},
      {"GET", "/v2/health/ready/", {kServerReady}},
      {"GET", "/v2/models/m", {kModelMetadata, "m"}},
      {"GET", "/v2/models/m/", {kModelMetadata, "m"}},
      {"GET", "/v2/models/m/versions/3", {kModelMetadata, "m", "3"}},
      {"GET", "/v2/models/m/ready", {kModelReady, "m"}},
      {"GET", "/v2/models/m/versions/v10/ready", {kModelReady, "m", "v10"}},
      {"GET", "/v2/models/m/config", {kModelConfig, "m"}},
      {"GET", "/v2/models/m/versions/3/config", {kModelConfig, "m", "3"}},
      {"GET", "/v2/models/stats", {kStatistics}},
      {"GET", "/v2/models/m/stats", {kStatistics, "m"}},
      {"GET", "/v2/models/m/versions/3/stats", {kStatistics, "m", "3"}},
      {"POST", "/v2/models/m/infer", {kInfer, "m"}},
      {"POST", "/v2/models/m/versions/3/infer/", {kInfer, "m", "3"}},
      {"POST", "/v2/models/m.pixels/infer", {kInfer, "m.pixels"}},
      {"POST", "/v2/repository/index", {kIndex}},
      {"POST", "/v2/repository/r/index", {.action = kIndex, .repository = "r"}},
      {"POST", "/v2/repository/models/m/load", {kLoad, "m"}},
      {"POST", "/v2/repository/models/m/unload", {kUnload, "m"}},
      {"POST", "/v2/repository/r/models/m/load", {.action = kLoad, .model = "m", .repository = "r"}},
      {"GET", "/v2/systemsharedmemory/status", {kRegionStatus}},
      {"GET", "/v2/systemsharedmemory/region/r/status", {.action = kRegionStatus, .region = "r"}},
      {"POST", "/v2/systemsharedmemory/region/r/register", {.action = kRegionRegister, .region = "r"}},
      {"POST", "/v2/systemsharedmemory/region/r/unregister", {.action = kRegionUnregister, .region = "r"}},
      {"POST", "/v2/systemsharedmemory/unregister", {kRegionUnregister}},
      {"GET", "/v2/cudasharedmemory/status", {kCudaRegionStatus}},
      {"GET", "/v2/cudasharedmemory/region/r/status", {.action = kCudaRegionStatus, .region = "r"}},
      {"POST", "/v2/cudasharedmemory/region/r/register", {.action = kCudaRegionRegister, .region = "r"}},
      {"POST", "/v2/cudasharedmemory/region/r/unregister", {.action = kCudaRegionUnregister, .region = "r"}},
      {"POST", "/v2/cudasharedmemory/unregister", {kCudaRegionUnregister}},
  };
  for (const auto& entry : table) {
    const auto found = FindHttpRoute(entry.verb, entry.path);
    ASSERT_TRUE(std::holds_alternative<HttpRoute>(found)) << entry.path;
    EXPECT_EQ(std::get<HttpRoute>(found), entry.route) << entry.path;
    const std::string other = std::string(entry.verb) == "GET" ? "POST" : "GET";
    for (const std::string& verb : {other, std::string("PUT"), std::string("DELETE")}) {
      const auto wrong = FindHttpRoute(verb, entry.path);
      ASSERT_TRUE(std::holds_alternative<NoHttpRoute>(wrong)) << entry.path;
      EXPECT_EQ(std::get<NoHttpRoute>(wrong).status, 405);
      EXPECT_EQ(std::get<NoHttpRoute>(wrong).allow,
                entry.verb == std::string_view("GET") ? "GET, HEAD" : entry.verb);
    }
  }
}

TEST(HttpRoute, NamesAreDecodedAndNothingButNames) {
  const auto model = [](std::string_view path) {
    const auto found = FindHttpRoute("POST", path);
    return std::holds_alternative<HttpRoute>(found) ? std::get<HttpRoute>(found).model : "refused";
  };
  EXPECT_EQ(model("/v2/models/a%20b%c3%a4/infer"), "a b\xc3\xa4");
  EXPECT_EQ(model("/v2/models/..%2F..%2fetc/infer"), "../../etc");
  EXPECT_EQ(model("/v2/models/../infer"), "..");
  EXPECT_EQ(model("/v2/models/a%00b/infer"), "refused");
  EXPECT_EQ(model("/v2/models/a%0ab/infer"), "refused");
  EXPECT_EQ(model("/v2/models/a%7f/infer"), "refused");
  EXPECT_EQ(model("/v2/models/a%/infer"), "refused");
  EXPECT_EQ(model("/v2/models/a%2/infer"), "refused");
  EXPECT_EQ(model("/v2/models/a%zz/infer"), "refused");
}

TEST(HttpRoute, HeadTakesTheRoutesOfGet) {
  const auto found = FindHttpRoute("HEAD", "/v2/health/ready");
  ASSERT_TRUE(std::holds_alternative<HttpRoute>(found));
  EXPECT_EQ(std::get<HttpRoute>(found).action, HttpAction::kServerReady);
  EXPECT_TRUE(std::holds_alternative<NoHttpRoute>(FindHttpRoute("HEAD", "/v2/models/m/infer")));
}

TEST(HttpRoute, WhatIsNoRouteIsNotFound) {
  for (const char* path : {"",
                           "/",
                           "*",
                           "/v1",
                           "/v2x",
                           "/v2//",
                           "/v2/health",
                           "/v2/health/dead",
                           "/v2/models",
                           "/v2/models/",
                           "/v2/models//infer",
                           "/v2/models/m/versions",
                           "/v2/models/m/versions//infer",
                           "/v2/models/m/infer/more",
                           "/v2/models/m/versions/1/infer/a/b/c/d",
                           "/v2/models/m/generate",
                           "/v2/repository",
                           "//v2",
                           "/v2/cudasharedmemory/register",
                           "/v2/logging",
                           "/V2/health/live",
                           "v2"}) {
    const auto found = FindHttpRoute("GET", path);
    ASSERT_TRUE(std::holds_alternative<NoHttpRoute>(found)) << path;
    EXPECT_EQ(std::get<NoHttpRoute>(found).status, 404) << path;
  }
}

}  // namespace
}  // namespace weir::oip
