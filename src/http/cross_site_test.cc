#include "http/cross_site.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

namespace weir::http {
namespace {

CrossSitePolicy Policy(CrossSitePolicy::Options options = {}) {
  return *CrossSitePolicy::Create(std::move(options));
}

TEST(CrossSite, JudgesHostsAndOriginsOfALoopbackServer) {
  const struct {
    std::string_view host;
    std::optional<std::string_view> origin;
    bool allowed;
  } kCases[] = {
      // Hosts: addresses and loopback names cannot be rebound.
      {"localhost:8000", {}, true},
      {"LocalHost", {}, true},
      {"localhost.", {}, true},
      {"app.localhost:1", {}, true},
      {"127.0.0.1:8000", {}, true},
      {"10.1.2.3:8000", {}, true},
      {"[::1]:8000", {}, true},
      {"[fe80::1]", {}, true},
      {"", {}, true},
      {"evil.example", {}, false},
      {"evil.example:8000", {}, false},
      {"localhost.evil.example", {}, false},
      {"127.0.0.1.evil.example", {}, false},
      {"notlocalhost", {}, false},
      {".", {}, false},
      {"localhost@evil.example", {}, false},
      {"evil.example localhost", {}, false},
      {"[evil.example]", {}, false},
      {"[::1", {}, false},
      {"localhost:80x", {}, false},
      // Origins.
      {"localhost:8000", "http://localhost:3000", true},
      {"localhost:8000", "https://LOCALHOST", true},
      {"localhost:8000", "http://127.0.0.1", true},
      {"localhost:8000", "http://127.9.9.9:1", true},
      {"localhost:8000", "http://[::1]:3000", true},
      {"localhost:8000", "http://evil.example", false},
      {"localhost:8000", "https://localhost.evil.example", false},
      {"localhost:8000", "http://127.0.0.1.evil.example", false},
      {"localhost:8000", "http://evil.example#localhost", false},
      {"localhost:8000", "http://localhost@evil.example", false},
      {"localhost:8000", "http://10.1.2.3", false},
      {"10.1.2.3:8000", "http://10.1.2.3:3000", true},
      {"localhost:8000", "null", false},
      {"localhost:8000", "", false},
      {"localhost:8000", "file://", false},
      {"localhost:8000", "chrome-extension://localhost", false},
      {"localhost:8000", "localhost", false},
      {"evil.example", "http://evil.example", false},
  };
  const CrossSitePolicy policy = Policy();
  for (const auto& c : kCases) {
    EXPECT_EQ(!policy.Refusal(c.host, c.origin), c.allowed) << c.host << " " << c.origin.value_or("-");
  }
}

TEST(CrossSite, AllowsWhatItsOptionsName) {
  const CrossSitePolicy policy = Policy({.origins = {"https://App.example", "http://dev.example:80", "null"},
                                         .hosts = {"weir.internal", "*.svc.cluster.local"}});
  EXPECT_FALSE(policy.Refusal("weir.internal:8000", "https://app.example"));
  EXPECT_FALSE(policy.Refusal("WEIR.internal", "https://app.example:443"));
  EXPECT_FALSE(policy.Refusal("a.svc.cluster.local", "http://dev.example"));
  EXPECT_FALSE(policy.Refusal("localhost", "null"));
  EXPECT_TRUE(policy.Refusal("localhost", "http://app.example")) << "another scheme";
  EXPECT_TRUE(policy.Refusal("localhost", "https://app.example:8443")) << "another port";
  EXPECT_TRUE(policy.Refusal("svc.cluster.local", std::nullopt));
  EXPECT_TRUE(policy.Refusal("a.weir.internal", std::nullopt));
  const CrossSitePolicy any = Policy({.origins = {"*"}, .hosts = {"*"}});
  EXPECT_FALSE(any.Refusal("evil.example", "http://evil.example"));
}

TEST(CrossSite, TakesAnyHostWhereTheServerListensToOthersUnlessItsNamesAreGiven) {
  for (const char* const address : {"0.0.0.0", "::", "10.1.2.3"}) {
    const CrossSitePolicy open = Policy({.address = address});
    EXPECT_FALSE(open.Refusal("weir.default.svc:8000", std::nullopt)) << address;
    EXPECT_TRUE(open.Refusal("weir.default.svc:8000", "http://evil.example")) << address;
    EXPECT_TRUE(open.Refusal("evil.example:8000", "http://evil.example:8000")) << address << ": rebound";
    const CrossSitePolicy named = Policy({.address = address, .hosts = {"weir.default.svc"}});
    EXPECT_FALSE(named.Refusal("weir.default.svc:8000", std::nullopt)) << address;
    EXPECT_FALSE(named.Refusal("10.9.9.9:8000", std::nullopt)) << address << ": a probe of kubelet";
    EXPECT_TRUE(named.Refusal("evil.example", std::nullopt)) << address;
  }
  EXPECT_FALSE(Policy({.address = "10.1.2.3"}).Refusal("weir.internal", "http://10.1.2.3"));
  EXPECT_FALSE(Policy({.address = "FE80::1"}).Refusal("weir.internal", "http://[fe80::1]:80"));
  EXPECT_TRUE(Policy({.address = "::1"}).Refusal("evil.example", std::nullopt)) << "loopback, too";
}

TEST(CrossSite, NamesAnOptionThatIsNoOriginOrHost) {
  for (const char* const origin : {"example.com", "https://", "https://a/b", "https://a b", ""}) {
    const auto policy = CrossSitePolicy::Create({.origins = {origin}});
    ASSERT_FALSE(policy) << origin;
    EXPECT_NE(policy.error().message.find("--allow-origin"), std::string::npos);
  }
  for (const char* const host : {"example.com:80", "http://example.com", "a b", "", "*.", "**"}) {
    const auto policy = CrossSitePolicy::Create({.hosts = {host}});
    ASSERT_FALSE(policy) << host;
    EXPECT_NE(policy.error().message.find("--allow-host"), std::string::npos);
  }
}

TEST(CrossSite, NamesNoFlagWhereThereIsNone) {
  const CrossSitePolicy policy = Policy({.has_flags = false});
  EXPECT_EQ(policy.Refusal("e.example", {}),
            "the host 'e.example' is not one of this server's names: use an address or localhost");
  EXPECT_EQ(policy.Refusal("localhost", "http://e.example"),
            "pages of 'http://e.example' may not call this server");
}

class Taker final : public HttpResponder::Connection {
 public:
  void Answer(uint64_t, HttpResponse given, HttpResponder::Sent) override { reply = std::move(given); }
  HttpResponse reply{.status = 0};
};

class CrossSiteGuard : public testing::Test {
 protected:
  HttpResponse Send(HttpRequest request) {
    const auto taker = std::make_shared<Taker>();
    GuardCrossSite(
        [this](const HttpRequest&, HttpResponder responder) {
          ++called_;
          responder.Send({.status = 200});
        },
        Policy(), "Inference-Header-Content-Length",
        [this](const std::string&) { ++refused_; })(std::move(request), HttpResponder(taker, 0));
    return taker->reply;
  }
  static std::string Header(const HttpResponse& reply, std::string_view name) {
    for (const auto& [key, value] : reply.headers) {
      if (key == name) return value;
    }
    return "";
  }

  int called_ = 0, refused_ = 0;
};

TEST_F(CrossSiteGuard, PassesOnWhatIsOfNoPageAsItIs) {
  const HttpResponse reply = Send({.method = "POST", .path = "/", .host = "localhost"});
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.headers.empty());
}

TEST_F(CrossSiteGuard, RefusesForeignPagesAndTheirPreflights) {
  for (const std::string_view method : {"GET", "POST", "OPTIONS"}) {
    const HttpResponse reply =
        Send({.method = method, .path = "/", .host = "localhost", .origin = "http://e.example"});
    EXPECT_EQ(reply.status, 403);
    EXPECT_EQ(Header(reply, "Access-Control-Allow-Origin"), "");
  }
  EXPECT_EQ(Send({.method = "GET", .path = "/", .host = "e.example"}).status, 403);
  EXPECT_EQ(called_, 0);
  EXPECT_EQ(refused_, 4);
}

TEST_F(CrossSiteGuard, TellsBrowsersWhatAllowedPagesMayDo) {
  const HttpResponse answer =
      Send({.method = "POST", .path = "/", .host = "localhost", .origin = "http://localhost:1"});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(Header(answer, "Access-Control-Allow-Origin"), "http://localhost:1");
  EXPECT_EQ(Header(answer, "Access-Control-Expose-Headers"), "Inference-Header-Content-Length");
  EXPECT_EQ(Header(answer, "Vary"), "Origin");
  EXPECT_EQ(called_, 1);
  const HttpResponse preflight = Send({.method = "OPTIONS",
                                       .path = "/",
                                       .host = "localhost",
                                       .origin = "http://localhost:1",
                                       .headers = {{"Access-Control-Request-Method", "POST"},
                                                   {"Access-Control-Request-Headers", "x-mine"},
                                                   {"Access-Control-Request-Private-Network", "true"}}});
  EXPECT_EQ(preflight.status, 200);
  EXPECT_EQ(Header(preflight, "Access-Control-Allow-Origin"), "http://localhost:1");
  EXPECT_EQ(Header(preflight, "Access-Control-Allow-Methods"), "GET, HEAD, POST");
  EXPECT_EQ(Header(preflight, "Access-Control-Allow-Headers"), "x-mine");
  EXPECT_EQ(Header(preflight, "Access-Control-Allow-Private-Network"), "true");
  EXPECT_EQ(called_, 1) << "a preflight is no request to the server";
}

}  // namespace
}  // namespace weir::http
