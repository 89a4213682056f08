#include "advise/accelerators.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/file.h"
#include "model/show.h"
#include "predict/asked.h"
#include "predict/predictor.h"

namespace weir::advise {
namespace {

constexpr uint64_t kMaxPredictorBytes = uint64_t{1} << 30;

// Returns the batches that the study plays; two at least, as an engine is a line through their times.
std::vector<int> BatchesOf(const study::Design& design) {
  std::set<int> batches;
  for (const study::Configuration& one : design.configurations) batches.insert(one.factors.value("batch", 8));
  if (batches.size() == 1) batches.insert(*batches.begin() > 1 ? *batches.begin() / 2 : 2);
  return {batches.begin(), batches.end()};
}

std::string ModelOf(const study::Design& design) {
  for (const study::Configuration& one : design.configurations) {
    const Json model = one.factors.value("model", Json());
    if (model.is_string()) return model.get<std::string>();
  }
  return "";
}

Accelerator::Engine ToEngine(const auto& line) {
  return {.text = line.engine, .base_ms = line.base_ms, .per_item_ms = line.per_item_ms};
}

}  // namespace

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Status CheckAskedAccelerators(const AskedAccelerators& asked) {
  const auto refuse = [](const char* what) { return Fail(ErrorCode::kInvalidArgument, what); };
  if (asked.names.empty() && (!asked.predictor.empty() || !asked.network.empty() || !asked.set.empty()))
    return refuse("--predictor, --network and --set say nothing without --hardware A,B");
  if (!asked.names.empty() && asked.predictor.empty())
    return refuse("--hardware wants --predictor FILE, as weir fit -o FILE makes it");
  if (!asked.names.empty() && SplitAtCommas(asked.names).empty())
    return refuse("--hardware names no accelerator");
  return {};
}

Result<std::vector<Accelerator>> ReadAccelerators(const AskedAccelerators& asked, const study::Design& design,
                                                  const std::map<std::string, double>& prices,
                                                  const std::function<std::string(const std::string&)>& find,
                                                  std::vector<std::string>& notes) {
  const Bytes saved = TRY(ReadFile(asked.predictor, kMaxPredictorBytes));
  const predict::Predictor predictor = TRY_CONTEXT(predict::Predictor::Load(saved.text()), asked.predictor);
  const std::vector<std::string> names = SplitAtCommas(asked.names);
  predict::AskedRows rows{
      .gpus = names, .set = asked.set, .network = asked.network, .batches = BatchesOf(design)};
  if (rows.network.empty() && predictor.spec().networks) rows.network = find(ModelOf(design));
  const results::PredictEngines predicted =
      TRY(predict::AnswerEngines(rows, predictor, model::DescribeModel, notes));
  if (predicted.engines.size() != names.size())
    return Fail(ErrorCode::kInvalidArgument, "--hardware and --set name the hardware twice");
  std::vector<Accelerator> accelerators;
  for (size_t i = 0; i < names.size(); ++i) {
    const results::PredictEngines::Engine& engine = predicted.engines[i];
    Accelerator one{.name = engine.hardware,
                    .middle = ToEngine(engine),
                    .fast = ToEngine(engine.fast),
                    .slow = ToEngine(engine.slow),
                    .outside = engine.outside};
    for (const std::string& name : {names[i], engine.hardware}) {
      if (const auto price = prices.find(name); price != prices.end()) one.price_per_hour = price->second;
    }
    accelerators.push_back(std::move(one));
  }
  return accelerators;
}

}  // namespace weir::advise
