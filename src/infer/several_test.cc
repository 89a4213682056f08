#include "infer/several.h"

#include <gtest/gtest.h>

#include <deque>
#include <utility>

#include "infer/testing/answers.h"

namespace weir::infer {
namespace {

using testing::Answers;

// Keeps its calls until the test answers them.
class FakeServer final : public Endpoint {
 public:
  ~FakeServer() override {
    while (!calls.empty()) Answer(Fail(ErrorCode::kCancelled, "the client is stopping"));
  }
  void Submit(Call call) override { calls.push_back(std::move(call)); }
  void Answer(Result<Response> result) {
    Call call = std::move(calls.front());
    calls.pop_front();
    call.Answer(std::move(result));
  }
  std::shared_ptr<const PreparedRequest> Prepare(const Request&, const RequestForm&) override {
    return std::make_shared<PreparedRequest>();
  }
  Result<std::vector<std::string>> Models() override { return models; }
  Result<ModelInfo> Info(const std::string& model, const std::string&) override {
    if (models.empty()) return Fail(ErrorCode::kNotFound, "no model " + model);
    return ModelInfo{.name = model, .max_batch = max_batch};
  }
  Result<PhaseTotals> Statistics(const std::string&, const std::string&) override {
    return PhaseTotals{.rows = rows};
  }

  std::deque<Call> calls;
  std::vector<std::string> models{"m"};
  int max_batch = 0;
  uint64_t rows = 0;
};

class SeveralTest : public ::testing::Test {
 protected:
  // The fakes remain the Endpoint's.
  std::unique_ptr<Endpoint> Make(size_t count) {
    std::vector<OneServer> servers;
    for (size_t i = 0; i < count; ++i) {
      auto fake = std::make_unique<FakeServer>();
      fakes_.push_back(fake.get());
      servers.push_back({.name = "server " + std::to_string(i), .endpoint = std::move(fake)});
    }
    return MakeSeveral(Balance::kRoundRobin, std::move(servers), clock_);
  }
  static std::vector<uint64_t> Counts(const Endpoint& endpoint) {
    std::vector<uint64_t> counts;
    for (const ServerCalls& calls : endpoint.Calls())
      counts.insert(counts.end(), {calls.answered, calls.failed, calls.moved});
    return counts;
  }

  const ManualClock clock_;
  Answers answers_;
  std::vector<FakeServer*> fakes_;
};

TEST_F(SeveralTest, CallsGoToEachServerInTurn) {
  const auto several = Make(2);
  for (int i = 0; i < 4; ++i) several->Submit(answers_.MakeCall(std::to_string(i)));
  EXPECT_EQ(fakes_[0]->calls.size(), 2U);
  EXPECT_EQ(fakes_[1]->calls.size(), 2U);
  EXPECT_EQ(fakes_[1]->calls.front().request.id, "1");
  for (FakeServer* fake : fakes_) {
    fake->Answer(Response{});
    fake->Answer(Response{});
  }
  EXPECT_EQ(Counts(*several), (std::vector<uint64_t>{2, 0, 0, 2, 0, 0}));
}

TEST_F(SeveralTest, ALostCallAndARefusedOneGoToAnotherServerOnce) {
  for (const ErrorCode code : {ErrorCode::kIo, ErrorCode::kOverloaded}) {
    fakes_.clear();
    const size_t before = answers_.count();
    const auto several = Make(2);
    several->Submit(answers_.MakeCall("a"));
    fakes_[0]->Answer(Fail(code, "gone"));
    EXPECT_EQ(answers_.count(), before);
    ASSERT_EQ(fakes_[1]->calls.size(), 1U);
    EXPECT_EQ(fakes_[1]->calls.front().request.id, "a");
    fakes_[1]->Answer(Fail(code, "gone too"));
    EXPECT_EQ(answers_.Wait(before + 1).back().result.error().message, "gone too");
    EXPECT_EQ(Counts(*several), (std::vector<uint64_t>{0, 0, 1, 0, 1, 0}));
  }
}

TEST_F(SeveralTest, EveryOtherErrorIsTheCallers) {
  const auto several = Make(2);
  for (const ErrorCode code : {ErrorCode::kInvalidArgument, ErrorCode::kNotFound, ErrorCode::kDeadline,
                               ErrorCode::kCancelled, ErrorCode::kInternal, ErrorCode::kCorrupt}) {
    const size_t before = answers_.count();
    several->Submit(answers_.MakeCall("a"));
    (fakes_[0]->calls.empty() ? fakes_[1] : fakes_[0])->Answer(Fail(code, "no"));
    EXPECT_EQ(answers_.Wait(before + 1).back().result.error().code, code);
  }
  EXPECT_EQ(Counts(*several), (std::vector<uint64_t>{0, 3, 0, 0, 3, 0}));
}

TEST_F(SeveralTest, TheMomentOfTheFirstSendStays) {
  const auto several = Make(2);
  Call call = answers_.MakeCall("a");
  call.times.planned = Instant(5s);
  call.times.sent = Instant(6s);
  several->Submit(std::move(call));
  fakes_[0]->Answer(Fail(ErrorCode::kIo, "gone"));
  fakes_[1]->Answer(Response{});
  EXPECT_EQ(answers_.Wait(1)[0].times.planned, Instant(5s));
  EXPECT_EQ(answers_.Wait(1)[0].times.sent, Instant(6s));
}

TEST_F(SeveralTest, EachServerGetsItsOwnPreparedForm) {
  const auto several = Make(2);
  const auto prepared = several->Prepare({}, {});
  for (int i = 0; i < 2; ++i) {
    Call call = answers_.MakeCall("a");
    call.request.prepared = prepared;
    several->Submit(std::move(call));
  }
  EXPECT_NE(fakes_[0]->calls.front().request.prepared, nullptr);
  EXPECT_NE(fakes_[0]->calls.front().request.prepared, prepared);
  EXPECT_NE(fakes_[0]->calls.front().request.prepared, fakes_[1]->calls.front().request.prepared);
}

TEST_F(SeveralTest, OneServerAloneIsNotAskedAgain) {
  const auto several = Make(1);
  several->Submit(answers_.MakeCall("a"));
  fakes_[0]->Answer(Fail(ErrorCode::kIo, "gone"));
  EXPECT_FALSE(answers_.Wait(1)[0].result);
}

TEST_F(SeveralTest, AnEndAnswersWhatIsUnderWay) {
  auto several = Make(2);
  for (int i = 0; i < 4; ++i) several->Submit(answers_.MakeCall(std::to_string(i)));
  several.reset();
  for (const auto& answer : answers_.Wait(4)) EXPECT_EQ(answer.result.error().code, ErrorCode::kCancelled);
}

TEST_F(SeveralTest, AllServersMustHaveTheSameModel) {
  const auto several = Make(2);
  fakes_[0]->rows = 3;
  fakes_[1]->rows = 4;
  EXPECT_TRUE(several->Info("m", ""));
  EXPECT_EQ(several->Statistics("m", "")->rows, 7U);
  fakes_[1]->max_batch = 8;
  EXPECT_EQ(several->Info("m", "").error().code, ErrorCode::kInvalidArgument);
  fakes_[1]->models.clear();
  EXPECT_EQ(several->Info("m", "").error().message, "server 1: no model m");
  EXPECT_TRUE(several->Models()->empty());
}

TEST_F(SeveralTest, OfABalancedChannelTheRetriesAreTakenFromItsOwnCounts) {
  class Channel final : public Endpoint {
   public:
    void Submit(Call call) override {
      submitted += 1;
      call.Answer(Fail(ErrorCode::kIo, "gone"));
    }
    Result<std::vector<std::string>> Models() override { return {}; }
    Result<ModelInfo> Info(const std::string&, const std::string&) override { return ModelInfo{}; }
    Result<PhaseTotals> Statistics(const std::string&, const std::string&) override { return PhaseTotals{}; }
    std::vector<ServerCalls> Calls() const override { return {{.server = "a", .moved = submitted}}; }
    uint64_t submitted = 0;
  };
  std::vector<OneServer> servers;
  servers.push_back({.name = "all", .endpoint = std::make_unique<Channel>(), .is_several = true});
  const auto several = MakeSeveral(Balance::kGrpcRoundRobin, std::move(servers), clock_);
  several->Submit(answers_.MakeCall("a"));
  EXPECT_EQ(Counts(*several), (std::vector<uint64_t>{0, 1, 1}));
}

}  // namespace
}  // namespace weir::infer
