// The instrument held against theory: schedules played in imagined time against servers whose waiting times
// are known in closed form. The same ledger, histograms and verdicts as in a real run; only time and the
// server are made.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "load/generator/ledger.h"
#include "load/generator/schedule.h"
#include "load/verdict/judge.h"

namespace weir::load {
namespace {

constexpr Instant kStart(1000s);
using ServiceTime = std::function<double(Random&)>;  // seconds

struct Load {
  RxTimestamps arrivals = PoissonArrivals{};
  double rate = 100;
  double seconds = 1000;
  double warm_up = 20;
  uint64_t seed = 1;
  // The server does nothing from here on, for so long.
  double stall_at = -1, stall_for = 0;
};

// One server, first come first served: whoever comes starts when the one before is done.
RunOutcome Simulate(const Load& load, const ServiceTime& service) {
  Schedule schedule = *Schedule::Create(load.arrivals, load.rate, Seed(load.seed));
  Random random = Seed(load.seed).Stream("service").MakeRandom();
  Ledger ledger({.warm_up = FromSeconds(load.warm_up), .length = FromSeconds(load.seconds)}, kStart);
  std::multimap<Instant, std::pair<Ledger::Ticket, Sample>> out;
  const auto end_until = [&](Instant now) {
    for (; !out.empty() && out.begin()->first <= now; out.erase(out.begin()))
      ledger.Ended(out.begin()->second.first, out.begin()->second.second);
  };
  Instant free = kStart;
  while (true) {
    const Instant planned = kStart + schedule.Next();
    end_until(planned);
    const auto ticket = ledger.Plan(planned, planned);
    if (!ticket) break;
    Instant start = std::max(planned, free);
    const Instant stall = kStart + FromSeconds(load.stall_at), stalled = stall + FromSeconds(load.stall_for);
    if (load.stall_at >= 0 && start >= stall && start < stalled) start = stalled;
    free = start + FromSeconds(service(random));
    out.emplace(
        free,
        std::pair(*ticket, Sample{.planned = planned, .sent = planned, .first_byte = free, .done = free}));
  }
  end_until(Instant::max());
  RunOutcome played;
  played.tally = ledger.tally();
  played.measured_s = Seconds(ledger.to() - ledger.from());
  played.busiest_thread = 0.1;
  return played;
}

double Mean(const RunOutcome& played) { return 1e-9 * *played.tally.response.Mean(); }
double Quantile(const RunOutcome& played, double p) {
  return 1e-9 * static_cast<double>(*played.tally.response.Quantile(p));
}

ServiceTime Fixed(double seconds) {
  return [=](Random&) { return seconds; };
}
ServiceTime Exponential(double mean) {
  return [=](Random& random) { return -mean * std::log(1 - random.Uniform()); };
}

// The response time of M/M/1 is exponential with mean S / (1 - rho) (Kleinrock 1975, 3.2).
TEST(Instrument, AgreesWithTheoryOnAnMM1Queue) {
  for (const double rho : {0.3, 0.6}) {
    const RunOutcome played = Simulate({.rate = 100, .seconds = 5000}, Exponential(rho / 100));
    const double mean = rho / 100 / (1 - rho);
    EXPECT_NEAR(Mean(played), mean, 0.02 * mean);
    EXPECT_NEAR(Quantile(played, 0.5), mean * std::log(2), 0.03 * mean);
    EXPECT_NEAR(Quantile(played, 0.99), mean * std::log(100), 0.05 * mean * std::log(100));
    EXPECT_EQ(played.tally.planned(), played.tally.answered());
  }
}

// The wait in M/D/1 is rho S / (2 (1 - rho)) on average (Pollaczek and Khinchine).
TEST(Instrument, AgreesWithTheoryOnAnMD1Queue) {
  for (const double rho : {0.3, 0.7}) {
    const RunOutcome played = Simulate({.rate = 100, .seconds = 5000}, Fixed(rho / 100));
    const double service = rho / 100, wait = rho * service / (2 * (1 - rho));
    EXPECT_NEAR(Mean(played), service + wait, 0.03 * (service + wait));
    EXPECT_NEAR(1e-9 * static_cast<double>(*played.tally.response.Min()), service, 1e-9);
  }
}

TEST(Instrument, GivesAConstantDelayToTheThousandth) {
  const RunOutcome played =
      Simulate({.arrivals = ConstantArrivals{}, .rate = 100, .seconds = 100}, Fixed(0.005));
  for (const double p : {0.5, 0.9, 0.99}) EXPECT_NEAR(Quantile(played, p), 0.005, 0.005e-3);
  EXPECT_DOUBLE_EQ(Mean(played), 0.005);
  EXPECT_DOUBLE_EQ(played.throughput(), 100);
}

TEST(Instrument, SeesBothModesOfATwoModedServer) {
  const auto service = [](Random& random) { return random.Uniform() < 0.95 ? 0.001 : 0.008; };
  const RunOutcome played = Simulate({.arrivals = ConstantArrivals{}, .rate = 100, .seconds = 500}, service);
  EXPECT_NEAR(Quantile(played, 0.5), 0.001, 1e-6);
  EXPECT_NEAR(Quantile(played, 0.99), 0.008, 8e-6);
  EXPECT_NEAR(Mean(played), 0.95 * 0.001 + 0.05 * 0.008, 1e-4);
}

// A second in which nothing is answered, in 20: of 1,000 requests a second that come meanwhile the k-th waits
// 1 s - k ms, and what has gathered then drains at 10,000 - 1,000 a second. The 99th percentile is what 200
// of 20,000 exceed.
TEST(Instrument, ChargesAStallToAllWhoWaited) {
  const RunOutcome played = Simulate({.arrivals = ConstantArrivals{},
                                      .rate = 1000,
                                      .seconds = 20,
                                      .warm_up = 0,
                                      .stall_at = 10,
                                      .stall_for = 1},
                                     Fixed(0.0001));
  ASSERT_EQ(played.tally.planned(), 20'000);
  // Request k comes k ms after the stall began and starts after k others have taken 0.1 ms each: it waits
  // 1 s - 0.9 k ms, so 200 requests wait longer than 0.82 s.
  EXPECT_NEAR(Quantile(played, 0.99), 0.82, 0.03 * 0.82);
  EXPECT_EQ(played.tally.answered(), 20'000);
}

// At twice what the server can do the wait of a request is half of the time that has passed.
TEST(Instrument, LetsResponseTimesGrowBeyondCapacityAndSaysSo) {
  const RunOutcome played =
      Simulate({.arrivals = ConstantArrivals{}, .rate = 200, .seconds = 100, .warm_up = 0}, Fixed(0.01));
  EXPECT_NEAR(1e-9 * static_cast<double>(*played.tally.response.Max()), 100, 0.1);
  EXPECT_NEAR(Quantile(played, 0.5), 50, 0.5);
  EXPECT_EQ(Judge(played, {.rate = 200}).latency.standing, results::Standing::kInvalid);
  EXPECT_NEAR(played.throughput(), 100, 0.1);
}

// When the request that comes now is answered.
using Server = std::function<Instant(Instant now)>;

// A closed loop by count: so many in flight, each answer followed by the next request at once.
RunOutcome SimulateCount(int in_flight, int64_t requests, int64_t warm_up_requests, const Server& server) {
  Ledger ledger({.warm_up_requests = warm_up_requests, .requests = requests}, kStart);
  std::multimap<Instant, std::pair<Ledger::Ticket, Sample>> out;
  const auto send = [&](Instant now) {
    const auto ticket = ledger.Plan(now, now);
    if (!ticket) return;
    const Instant done = server(now);
    out.emplace(done,
                std::pair(*ticket, Sample{.planned = now, .sent = now, .first_byte = done, .done = done}));
  };
  for (int i = 0; i < in_flight; ++i) send(kStart);
  while (!out.empty()) {
    const auto [done, request] = *out.begin();
    out.erase(out.begin());
    ledger.Ended(request.first, request.second);
    send(done);
  }
  RunOutcome played;
  played.tally = ledger.tally();
  played.by_count = true;
  played.measured_s = Seconds(ledger.to() - ledger.from());
  return played;
}

// One after the other, 10 ms each: 100 a second, however many wait and whatever came before. Over the time to
// the last answer the requests themselves are 100 n / (n + 7) after a warm-up.
TEST(Instrument, GivesTheRateOfAServerByCountExactly) {
  for (const int64_t warm_up : {0, 50}) {
    for (const int64_t requests : {5, 20, 100}) {
      Instant free = kStart;
      const RunOutcome played =
          SimulateCount(8, requests, warm_up, [&](Instant now) { return free = std::max(free, now) + 10ms; });
      EXPECT_EQ(played.tally.answered(), requests);
      EXPECT_NEAR(played.throughput(), 100, 1e-9) << requests << " after " << warm_up;
    }
  }
}

// Eight at a time, each after an exponential time of mean S: 8 / S. After the last plan the eight in flight
// take H(8) = 2.72 times S until the last of them is answered, so that over the time to the last answer the
// rate would be 200 / (199 / 8 + 2.72) / S, 9 % too little. The mean of m / T, with T the sum of m gaps, is
// m / (m - 1) of the rate.
TEST(Instrument, GivesTheRateOfManyServersByCountWithoutBias) {
  for (const int64_t warm_up : {0, 50}) {
    constexpr int kRuns = 400;
    double sum = 0;
    for (int i = 0; i < kRuns; ++i) {
      Random random = Seed(70'000u + static_cast<uint64_t>(i)).MakeRandom();
      const auto exponential = Exponential(0.01);
      sum += SimulateCount(8, 200, warm_up, [&](Instant now) {
               return now + FromSeconds(exponential(random));
             }).throughput();
    }
    EXPECT_NEAR(sum / kRuns, 800, 0.015 * 800) << "after " << warm_up;
  }
}

// On a system that does not change, verdicts other than VALID are false alarms.
TEST(Instrument, RaisesFewFalseAlarms) {
  int alarms = 0;
  constexpr int kRuns = 200;
  for (int i = 0; i < kRuns; ++i) {
    const Claims claims =
        Judge(Simulate({.rate = 200, .seconds = 30, .warm_up = 2, .seed = 1000u + i}, Exponential(0.002)),
              {.rate = 200});
    alarms += claims.throughput.standing != results::Standing::kValid ||
              claims.latency.standing != results::Standing::kValid;
  }
  EXPECT_LE(alarms, kRuns / 20);
}

// The interval of the mean holds the truth in about 95 of 100 runs.
TEST(Instrument, ItsIntervalsHoldTheTruth) {
  int held = 0;
  constexpr int kRuns = 200;
  const double truth = 0.002 / (1 - 0.4);
  for (int i = 0; i < kRuns; ++i) {
    const RunOutcome played =
        Simulate({.rate = 200, .seconds = 60, .warm_up = 2, .seed = 5000u + i}, Exponential(0.002));
    const auto interval = MeanResponse(played);
    ASSERT_TRUE(interval.has_value());
    held += interval->low <= truth && truth <= interval->high;
  }
  EXPECT_GE(held, 0.9 * kRuns);
  EXPECT_LE(held, 0.995 * kRuns);
}

// The same system measured twice differs by more than chance allows about as often as was agreed, 1 in 20.
TEST(Instrument, SeldomTellsASystemFromItself) {
  int told_apart = 0;
  constexpr int kPairs = 200;
  for (int i = 0; i < kPairs; ++i) {
    const auto one = MeanResponse(
        Simulate({.rate = 200, .seconds = 30, .warm_up = 2, .seed = 20'000u + i}, Exponential(0.002)));
    const auto other = MeanResponse(
        Simulate({.rate = 200, .seconds = 30, .warm_up = 2, .seed = 40'000u + i}, Exponential(0.002)));
    ASSERT_TRUE(one && other);
    told_apart +=
        std::abs(one->mean - other->mean) > 1.96 * std::hypot(one->standard_error, other->standard_error);
  }
  EXPECT_GE(told_apart, 1);
  EXPECT_LE(told_apart, kPairs / 8);
}

}  // namespace
}  // namespace weir::load
