// How sources are named and reached, and what they make of pictures and times.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "watch/file_pace.h"
#include "watch/http_authorization.h"
#include "watch/picture_turn.h"
#include "watch/stream_spec.h"
#include "watch/stream_url.h"

namespace weir::watch {
namespace {

using testing::HasSubstr;

TEST(StreamUrl, HasItsParts) {
  const auto url = SplitStreamUrl("http://us%40er:p%2Fw%3a@cam.local/a/b?c=d#e", kHttpPort);
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_EQ(*url->user, "us@er");
  EXPECT_EQ(url->password, "p/w:");
  EXPECT_EQ(url->server.Address(), "cam.local:80");
  EXPECT_EQ(url->path, "/a/b?c=d");
  EXPECT_EQ(SplitStreamUrl("rtsp://[::1]", kRtspPort)->server.Address(), "[::1]:554");
  EXPECT_EQ(SplitStreamUrl("http://a:8080?x", kHttpPort)->path, "/?x");
  EXPECT_EQ(SplitStreamUrl("http://u:p@w@host/", kHttpPort)->password, "p@w") << "the last @ ends the user";
}

TEST(StreamUrl, APasswordThatIsNotEncodedIsTaken) {
  for (const char* password : {"p/w", "p#w", "p?w", "12/3", "a@b"}) {
    const auto url = SplitStreamUrl(fmt::format("http://u:{}@cam:81/x", password), kHttpPort);
    ASSERT_TRUE(url) << password << ": " << url.error().message;
    EXPECT_EQ(url->password, password);
    EXPECT_EQ(url->server.Address(), "cam:81");
    EXPECT_EQ(url->path, "/x");
    if (std::string_view(password) == "12/3") continue;  // may be a port and a path
    EXPECT_EQ(ParseStream(fmt::format("rtsp://u:{}@cam/x", password))->name, "rtsp://u:***@cam/x");
  }
}

TEST(StreamUrl, APercentThatIsNotEncodedGetsAHint) {
  const auto stream = ParseStream("http://u:50%x@cam/");
  ASSERT_FALSE(stream);
  EXPECT_THAT(stream.error().message, HasSubstr("%25"));
  EXPECT_THAT(stream.error().message, testing::Not(HasSubstr("50")));
  EXPECT_EQ(stream.error().code, ErrorCode::kInvalidArgument);
  for (const char* bad : {"http://", "rtsp://:1/x", "http://cam:x/", "http://cam/a b", "http://u@"})
    EXPECT_FALSE(ParseStream(bad)) << bad;
}

// The examples of RFC 7616, 3.9.1.
constexpr const char* kNonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v";
const Credentials kMufasa{.user = "Mufasa", .password = "Circle of Life"};
const AuthorizedRequest kIndex{.method = "GET",
                               .target = "/dir/index.html",
                               .client_nonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"};

TEST(Authorize, AnswersDigestAsTheRfcHasIt) {
  const auto challenge = [](const char* algorithm) {
    return fmt::format(
        "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm={}, nonce=\"{}\", "
        "opaque=\"xyz\"",
        algorithm, kNonce);
  };
  const auto md5 = Authorize({challenge("MD5")}, kMufasa, kIndex);
  ASSERT_TRUE(md5) << md5.error().message;
  EXPECT_THAT(*md5, HasSubstr("response=\"8ca523f5e9506fed4657c9700eebdbec\""));
  EXPECT_THAT(*md5, HasSubstr("nc=00000001"));
  EXPECT_THAT(*md5, HasSubstr("opaque=\"xyz\""));
  const auto both = Authorize({"Basic realm=x, " + challenge("MD5"), challenge("SHA-256")}, kMufasa, kIndex);
  ASSERT_TRUE(both);
  EXPECT_THAT(*both, HasSubstr("753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"))
      << "the strongest";
}

TEST(Authorize, AnswersOldDigestAndBasic) {
  const auto old =
      Authorize({"Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\""},
                {.user = "Mufasa", .password = "Circle Of Life"}, kIndex);
  EXPECT_THAT(*old, HasSubstr("response=\"670fd8c2df070c60b045671b8b24ff02\""));
  EXPECT_THAT(*old, testing::Not(HasSubstr("qop")));
  EXPECT_EQ(*Authorize({"Basic realm=\"a, b=c\""}, {.user = "u", .password = "p"}, kIndex), "Basic dTpw");
  EXPECT_EQ(*Authorize({}, {.user = "u", .password = "p"}, kIndex), "Basic dTpw");
  const auto unknown = Authorize({"NTLM", "Digest realm=a, nonce=b, algorithm=SHA-512"}, kMufasa, kIndex);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("ntlm"));
  for (const char* garbage : {"", "=", "===,,=", "Digest \"", "Digest realm=\"\\", "a=b"})
    static_cast<void>(Authorize({garbage}, kMufasa, kIndex));
}

std::vector<double> Moments(FilePace pace, const std::vector<FilePace::Packet>& packets) {
  std::vector<double> moments;
  for (const FilePace::Packet& packet : packets) moments.push_back(Seconds(pace.Next(packet).read));
  return moments;
}
FilePace::Packet At(double s) { return {.decoded_s = s, .shown_s = {}, .length_s = 0.1}; }
const FilePace::Packet kUnstamped{.decoded_s = {}, .shown_s = {}, .length_s = 0.1};

TEST(FilePace, FollowsTheStampsThroughGapsOfAnyLength) {
  EXPECT_THAT(Moments(FilePace(), {At(5), At(16), At(27)}), testing::ElementsAre(0, 11, 22));
  EXPECT_THAT(Moments(FilePace(), {At(-0.2), At(-0.1), At(0)}),
              testing::Pointwise(testing::DoubleNear(1e-6), {0.0, 0.1, 0.2}));
}

TEST(FilePace, WithoutStampsEachPacketTakesItsLength) {
  EXPECT_THAT(Moments(FilePace(), {kUnstamped, kUnstamped, kUnstamped}),
              testing::Pointwise(testing::DoubleNear(1e-6), {0.0, 0.1, 0.2}));
  EXPECT_THAT(Moments(FilePace(), {At(3), kUnstamped, At(3.2)}),
              testing::Pointwise(testing::DoubleNear(1e-6), {0.0, 0.1, 0.2}));
}

TEST(FilePace, StampsThatJumpFollowTheLastPacket) {
  EXPECT_THAT(Moments(FilePace(FilePace::Stamps::kMayJump), {At(5), At(500), At(500.1), At(3)}),
              testing::Pointwise(testing::DoubleNear(1e-6), {0.0, 0.1, 0.2, 0.3}));
  EXPECT_THAT(Moments(FilePace(), {At(5), At(5.1), At(0), At(0.1)}),
              testing::Pointwise(testing::DoubleNear(1e-6), {0.0, 0.1, 0.2, 0.3}))
      << "a file that begins again";
  EXPECT_THAT(Moments(FilePace(), {At(5), At(5.1), At(5.05), At(5.2)}),
              testing::Pointwise(testing::DoubleNear(1e-6), {0.0, 0.1, 0.1, 0.2}))
      << "not in order";
}

TEST(FilePace, AFrameThatOthersNeedIsShownLater) {
  FilePace pace;
  const auto due = pace.Next({.decoded_s = 1, .shown_s = 1.3, .length_s = 0.1});
  EXPECT_EQ(due.read, Duration{});
  EXPECT_NEAR(Seconds(due.shown), 0.3, 1e-6);
}

std::optional<image::Turn> TurnBy(int a, int b, int c, int d) {
  constexpr int kOne = 1 << 16;
  const std::array<int32_t, 9> matrix{a * kOne, b * kOne, 0, c * kOne, d * kOne, 0, 0, 0, 1 << 30};
  return TurnOfMatrix(matrix);
}

// Pixel 0 at the left, 1 at the right of one row.
image::Pixels Row() { return {.width = 2, .height = 1, .channels = 1, .data = {0, 1}}; }

TEST(TurnOfMatrix, IsThatOfFfmpeg) {
  EXPECT_FALSE(TurnBy(1, 0, 0, 1)->transposed);
  const auto clockwise = TurnBy(0, 1, -1, 0);
  ASSERT_TRUE(clockwise);
  const image::Pixels turned = Turned(Row(), *clockwise);
  EXPECT_EQ(turned.width, 1);
  EXPECT_EQ(turned.height, 2);
  EXPECT_EQ(turned.data, (std::vector<uint8_t>{0, 1})) << "the left is on top";
  EXPECT_EQ(Turned(Row(), *TurnBy(0, -1, 1, 0)).data, (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(Turned(Row(), *TurnBy(-1, 0, 0, -1)).data, (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(Turned(Row(), *TurnBy(-1, 0, 0, 1)).data, (std::vector<uint8_t>{1, 0})) << "mirrored";
  EXPECT_EQ(Turned(Row(), *TurnBy(1, 0, 0, -1)).data, (std::vector<uint8_t>{0, 1})) << "upside down";
  EXPECT_FALSE(TurnBy(1, 1, -1, 1)) << "45 degrees";
  EXPECT_FALSE(TurnBy(0, 0, 0, 0)->transposed);
}

TEST(Turned, TurnsEachPlane) {
  const uint8_t luma[8] = {1, 2, 3, 4, 5, 6, 7, 8}, blue[2] = {10, 20}, red[2] = {30, 40};
  const image::PlanarPixels from{
      .planes = {luma, blue, red}, .steps = {4, 2, 2}, .width = 4, .height = 2, .colours = {}};
  const auto turned = Turned(from, *TurnBy(0, 1, -1, 0));
  EXPECT_EQ(turned->width, 2);
  EXPECT_EQ(turned->height, 4);
  EXPECT_EQ(std::vector<uint8_t>(turned->planes[0], turned->planes[0] + 8),
            (std::vector<uint8_t>{5, 1, 6, 2, 7, 3, 8, 4}));
  EXPECT_EQ(std::vector<uint8_t>(turned->planes[2], turned->planes[2] + 2), (std::vector<uint8_t>{30, 40}));
}

}  // namespace
}  // namespace weir::watch
