#include "launch/balancer/balancer.h"

#include <gmock/gmock.h>

#include "base/json.h"

namespace weir::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

BalancerOptions Options(BalancerKind kind, bool grpc) {
  return {.kind = kind, .grpc = grpc, .backends = {"10.0.0.1:8000", "10.0.0.2:8000"}, .folder = "/run/b"};
}

TEST(BalancerConfig, HaproxyTakesTurnsAndTriesOnceMore) {
  const std::string text = BalancerConfig(Options(BalancerKind::kHaproxy, false), "127.0.0.1", 9000);
  EXPECT_THAT(text, AllOf(HasSubstr("bind 127.0.0.1:9000\n"), HasSubstr("balance roundrobin"),
                          HasSubstr("server s1 10.0.0.2:8000\n"), HasSubstr("retries 1\n")));
  EXPECT_THAT(BalancerConfig(Options(BalancerKind::kHaproxy, true), "127.0.0.1", 9000),
              AllOf(HasSubstr("bind 127.0.0.1:9000 proto h2\n"), HasSubstr("10.0.0.2:8000 proto h2\n")));
}

TEST(BalancerConfig, NginxHasOneWorkerAndNothingOutsideItsFolder) {
  const std::string text = BalancerConfig(Options(BalancerKind::kNginx, false), "127.0.0.1", 9000);
  EXPECT_THAT(text, AllOf(HasSubstr("worker_processes 1;"), HasSubstr("listen 127.0.0.1:9000;"),
                          HasSubstr("proxy_pass http://servers;"), HasSubstr("pid /run/b/nginx.pid;"),
                          HasSubstr("proxy_next_upstream_tries 2;"), Not(HasSubstr("grpc"))));
  EXPECT_THAT(BalancerConfig(Options(BalancerKind::kNginx, true), "127.0.0.1", 9000),
              AllOf(HasSubstr("listen 127.0.0.1:9000 http2;"), HasSubstr("grpc_pass grpc://servers;")));
}

TEST(BalancerConfig, EnvoysIsJsonWithBothServers) {
  for (const bool grpc : {false, true}) {
    const auto json = ParseJson(BalancerConfig(Options(BalancerKind::kEnvoy, grpc), "127.0.0.1", 9000));
    ASSERT_TRUE(json) << json.error().message;
    const Json& cluster = (*json)["static_resources"]["clusters"][0];
    EXPECT_EQ(cluster["lb_policy"], "ROUND_ROBIN");
    EXPECT_EQ(cluster["load_assignment"]["endpoints"][0]["lb_endpoints"].size(), 2U);
    EXPECT_EQ(cluster.contains("typed_extension_protocol_options"), grpc);
  }
}

}  // namespace
}  // namespace weir::launch
