// What the other end of an agents' connection says, to an agent and to rank 0: bytes are messages, messages
// words, words turns, or an error; a message that is read is written so that it is read again, histograms
// too.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cluster/message.h"
#include "cluster/protocol.h"
#include "cluster/roster.h"
#include "cluster/turns.h"

namespace weir::cluster {
namespace {

void CheckHistograms(std::string_view block) {
  while (!block.empty()) {
    auto histogram = stats::Histogram::TakeFrom(block);
    if (!histogram) return;
    std::string bytes;
    histogram->AppendTo(bytes);
    std::string_view rest = bytes;
    const auto read = stats::Histogram::TakeFrom(rest);
    CHECK(read && rest.empty() && read->Buckets() == histogram->Buckets());
    (void)histogram->StandardDeviation();
  }
}

// Both sides as far as they go; what this end does meanwhile follows from the data, too.
class Ends {
 public:
  void Take(const Word& word, uint64_t choice) {
    if (agent_ok_) agent_ok_ = TakeAsAgent(word, choice);
    if (rank_ok_) rank_ok_ = TakeAsRank(word, choice);
    now_ += 1ms;
  }

 private:
  bool TakeAsAgent(const Word& word, uint64_t choice) {
    const bool called = agent_.called();
    const auto turn = agent_.Take(word, now_);
    if (!turn) return false;
    if (std::holds_alternative<word::Call>(*turn)) CHECK(!called && agent_.called());
    if (const auto* step = std::get_if<PassedStep>(&*turn)) CHECK(step->cost >= Duration{});
    if (choice % 3 == 0) agent_.Arrive(step_++, now_);
    if (choice % 7 == 0) {
      agent_.EndSteps();
      agent_.EndCall();
      step_ = 0;
    }
    return true;
  }

  bool TakeAsRank(const Word& word, uint64_t choice) {
    const bool called = rank_.called();
    const auto turn = rank_.Take(word);
    if (!turn) return false;
    if (const auto* hello = std::get_if<word::Hello>(&*turn))
      if (const auto joined = roster_.Join(hello->name, hello->rank, hello->world, now_)) place_ = *joined;
    if (const auto* arrive = std::get_if<word::Arrive>(&*turn)) {
      CHECK(called);
      const auto releases = barrier_.Arrive(place_, arrive->step, arrive->last, now_);
      CHECK(!releases || releases->empty());  // the other rank never comes
    }
    if (choice % 2 == 0) rank_.Ping();
    if (choice % 5 == 0) rank_.Call(static_cast<int64_t>(choice % 8));
    return true;
  }

  Instant now_{};
  AgentTurns agent_{std::nullopt, 0};
  RankTurns rank_;
  Roster roster_{2};
  StepBarrier barrier_{2};
  int place_ = 0;
  int64_t step_ = 0;
  bool agent_ok_ = true, rank_ok_ = true;
};

}  // namespace
}  // namespace weir::cluster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::cluster;
  MessageReader reader;
  reader.Add({reinterpret_cast<const char*>(data), size});
  Ends ends;
  uint64_t choice = size;
  while (true) {
    const auto message = reader.Next();
    if (!message || !*message) return 0;
    const auto bytes = EncodeMessage(**message);
    CHECK(bytes.has_value());
    MessageReader again;
    again.Add(*bytes);
    const auto same = again.Next();
    CHECK(same && *same && (*same)->block == (*message)->block);
    CheckHistograms((*message)->block);
    const auto word = WordFrom(**message);
    if (!word) continue;
    const auto written = WordFrom(ToMessage(*word));
    CHECK(written && KindOf(*written) == KindOf(*word));
    ends.Take(*word, choice);
    choice = choice * 6364136223846793005 + bytes->size();
  }
}
