#include "load/session/session_requests.h"

#include <fmt/format.h>

#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "base/count.h"
#include "base/file.h"
#include "dataset/recipe.h"
#include "load/inputs/answer_check.h"
#include "load/inputs/input_data.h"
#include "load/inputs/picture_requests.h"
#include "load/inputs/requests.h"
#include "load/session/level.h"

namespace weir::load {
namespace {

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

Result<dataset::Recipe> FindRecipe(const LoadOptions& load, const Target& target) {
  if (!load.recipe.empty()) return dataset::ReadRecipe(load.recipe);
  const auto reported = target.info().parameters.find("recipe");
  if (reported == target.info().parameters.end())
    return Invalid(
        "--data are pictures, and the model tells no recipe: say with --recipe FILE how they become its "
        "input");
  return dataset::ParseRecipe(reported->second, "");
}

// Checks that the best class of each picture is that of the predictions file.
Result<AnswerCheck> TopClassCheck(const std::string& file, const PictureRequests& made,
                                  const dataset::Recipe& recipe) {
  const TopClasses answers = TRY(TopClasses::Read(TRY(ReadTextFile(file))));
  std::vector<std::vector<int>> classes(made.requests.size());
  size_t number = 0;
  for (std::vector<int>& rows : classes) {
    for (int i = 0; i < made.batch; ++i, ++number)
      rows.push_back(TRY(answers.Of(made.names[number % made.names.size()])));
  }
  return HasTopClasses(std::move(classes), recipe.first_class);
}

Result<Requests> RequestsOfPictures(const LoadOptions& load, const Target& target, const NoteSink& note) {
  const dataset::Recipe recipe = TRY(FindRecipe(load, target));
  const PictureOptions options{.payload = target.takes_pixels() ? Payload::kPixels : load.payload,
                               .batch = load.batch,
                               .pool_limit = load.pool};
  auto made = TRY(MakePictureRequests(target.info(), target.version(), recipe, load.data, options));
  if (note)
    note(fmt::format("{} of {}; {} rejected, {} left out", Count(std::ssize(made.requests), "request"),
                     Count(std::ssize(made.names), "picture"), Count(made.rejected), Count(made.left_out)));
  Requests requests;
  if (load.check.ends_with(".csv"))
    requests.check = TRY_CONTEXT(TopClassCheck(load.check, made, recipe), load.check);
  requests.pool = std::move(made.requests);
  return requests;
}

// Submits the request and waits for its response.
Result<infer::Response> Ask(infer::Service& service, const infer::Request& request) {
  std::promise<Result<infer::Response>> answered;
  infer::Call call;
  call.request = request;
  call.completion = infer::Completion(
      [&](Result<infer::Response> result, const infer::Times&) { answered.set_value(std::move(result)); });
  service.Submit(std::move(call));
  return answered.get_future().get();
}

// The largest difference between floats, as a share of an output's largest value: other engines and other
// batches add up in another order.
constexpr double kTolerance = 1e-3;

// Compares responses with those of a model in this process.
Result<AnswerCheck> ProcessCheck(const LoadOptions& load, const std::vector<infer::Request>& pool,
                                 const NoteSink& note, const Clock& clock) {
  LoadOptions local;
  local.target = load.check;
  local.engine = load.engine;
  local.precision = load.precision;
  local.recipe = load.recipe;
  local.batch = load.batch;
  const std::unique_ptr<Target> target = TRY_CONTEXT(OpenTarget(local, clock, 1), "--check");
  if (note)
    note(fmt::format("the answers to {} are worked out by {}", Count(std::ssize(pool), "request"),
                     target->Title()));
  std::vector<std::vector<infer::Tensor>> expected;
  for (const infer::Request& request : pool) {
    infer::Response response = TRY_CONTEXT(Ask(target->service(), request), "--check " + load.check);
    expected.push_back(std::move(response.outputs));
  }
  return HasOutputs(std::move(expected), kTolerance);
}

Result<Requests> RequestsOfTensors(const LoadOptions& load, const Target& target) {
  if (load.payload != Payload::kTensor)
    return Invalid(fmt::format("--payload {} sends pictures: name them with --data", ToString(load.payload)));
  RequestOptions options{
      .batch = load.batch,
      .shapes = TRY(ParseShapes(load.shapes)),
      .fill = load.zero_input ? RequestOptions::Fill::kZero : RequestOptions::Fill::kRandom,
      .pool = load.pool,
      .string_data = load.string_data,
      .string_length = load.string_length,
      .seed = Seed(static_cast<uint64_t>(load.seed)).Stream("data"),
      .outputs = {}};
  if (load.input_data.size() > 1) return Invalid("--input-data is given once");
  const std::string source = load.input_data.empty() ? "random" : load.input_data.front();
  const bool checks_data = load.check == kCheckData;
  if (source == "random" || source == "zero") {
    if (source == "zero") options.fill = RequestOptions::Fill::kZero;
    if (checks_data)
      return Invalid(
          "--check needs answers to expect: the validation_data of an --input-data file, or a model after "
          "--check");
    return Requests{.pool = TRY(MakeRequests(target.info(), target.version(), options)), .check = {}};
  }
  InputData data;
  std::error_code ignored;
  if (std::filesystem::is_directory(source, ignored)) {
    data = TRY(ReadInputFolder(source, target.info(), target.version(), options));
  } else {
    data = TRY_CONTEXT(ReadInputData(TRY(ReadTextFile(source)), target.info(), target.version(), options),
                       source);
  }
  Requests requests{.pool = std::move(data.requests), .check = {}};
  if (!checks_data) return requests;
  if (data.expected.empty())
    return Invalid(fmt::format("--check: {} says nothing of the answers (validation_data)", source));
  requests.check = HasOutputs(std::move(data.expected), 0);
  return requests;
}

// Makes a request for each file of --body, with the file as its one input. Without files: one request without
// a body.
Result<Requests> RequestsOfBodies(const LoadOptions& load) {
  Requests requests;
  uint64_t left = kMaxRequestBytes;
  for (const std::string& file : load.bodies) {
    Bytes body = TRY(ReadFile(file, left));
    left -= body.size();
    infer::Request request;
    request.inputs.push_back({.name = "body",
                              .dtype = infer::DType::kUint8,
                              .shape = {static_cast<int64_t>(body.size())},
                              .data = std::move(body)});
    requests.pool.push_back(std::move(request));
  }
  if (requests.pool.empty()) requests.pool.emplace_back();
  return requests;
}

}  // namespace

Result<Requests> RequestsFor(const LoadOptions& load, const Target& target, const NoteSink& note,
                             const Clock& clock) {
  if (!load.endpoint.empty()) return RequestsOfBodies(load);
  const bool of_pictures = !load.data.empty(), by_file = load.check.ends_with(".csv");
  if (of_pictures && load.check == kCheckData)
    return Invalid(
        "--check wants the answers to the pictures of --data: the CSV file of weir run --answers, or a "
        "model");
  if (!of_pictures && by_file)
    return Invalid(fmt::format("--check {} has the classes of pictures: name those with --data", load.check));
  if (of_pictures && !by_file && !load.check.empty() && load.payload != Payload::kTensor)
    return Invalid(
        "--check MODEL gives that model what is sent: leave --payload out, or check against a CSV file");
  if (!by_file && !load.check.empty() && load.check != kCheckData && target.takes_pixels())
    return Invalid(
        "--check MODEL gives that model what is sent, and pixels are no tensor: leave --preprocess gpu out, "
        "or check pictures against a CSV file");
  Requests requests =
      of_pictures ? TRY(RequestsOfPictures(load, target, note)) : TRY(RequestsOfTensors(load, target));
  if (!load.check.empty() && load.check != kCheckData && !by_file)
    requests.check = TRY(ProcessCheck(load, requests.pool, note, clock));
  return requests;
}

}  // namespace weir::load
