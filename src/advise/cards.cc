#include "advise/cards.h"

#include <fmt/format.h>

#include "base/file.h"
#include "model/show.h"
#include "predict/asked.h"
#include "predict/predictor.h"
#include "probe/named_accelerators.h"

namespace weir::advise {
namespace {

constexpr uint64_t kMaxPredictorBytes = uint64_t{1} << 30;

}  // namespace

Result<Duration> PredictedStep(const probe::AskedCard& asked, int batch, std::vector<std::string>& notes) {
  const Bytes saved = TRY(ReadFile(asked.predictor, kMaxPredictorBytes));
  const predict::Predictor predictor = TRY_CONTEXT(predict::Predictor::Load(saved.text()), asked.predictor);
  const predict::AskedRows rows{
      .gpus = {asked.card}, .network = asked.network, .batches = {batch, batch > 1 ? batch / 2 : 2}};
  const auto predicted = TRY(predict::AnswerEngines(rows, predictor, model::DescribeModel, notes));
  const results::PredictEngines::Engine& engine = predicted.engines.front();
  const auto step_ms = [&](const auto& line) { return line.base_ms + line.per_item_ms * batch; };
  notes.push_back(
      fmt::format("a step of {} samples takes {:.4g} ms on {} ({:.4g} to {:.4g} ms), predicted by {}{}",
                  batch, step_ms(engine), engine.hardware, step_ms(engine.fast), step_ms(engine.slow),
                  asked.predictor, engine.outside.empty() ? "" : "; outside: " + engine.outside));
  return FromSeconds(step_ms(engine) / 1e3);
}

Result<Duration> SharedStep(const std::string& accelerators, probe::AskedCard asked,
                            std::vector<std::string>& notes) {
  const auto refuse = [](const char* what) { return Fail(ErrorCode::kInvalidArgument, what); };
  const probe::NamedAccelerators named = TRY(probe::ParseAccelerators(accelerators));
  if (named.least != named.most || named.card.empty())
    return refuse("--accelerators of a feed is one number of a card: 8xh100");
  asked.card = named.card;
  TRY_STATUS(probe::CheckCard(asked));
  if (!asked.predictor.empty())
    return PredictedStep(asked, (asked.batch + named.most - 1) / named.most, notes);
  const probe::StorageProfile profile = TRY(probe::FindCardProfile(asked.profile, asked.card));
  notes.push_back(probe::CardText(profile));
  return probe::StepOf(profile, asked.batch, named.most);
}

}  // namespace weir::advise
