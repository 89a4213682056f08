#include "cli/load_requests.h"

#include <fmt/format.h>

#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "base/file.h"
#include "dataset/recipe.h"
#include "load/inputs/answer_check.h"
#include "load/inputs/input_data.h"
#include "load/inputs/picture_requests.h"
#include "load/inputs/requests.h"

namespace weir::cli {
namespace {

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

Result<dataset::Recipe> FindRecipe(const LoadFlags& flags, const LoadTarget& target) {
  if (!flags.recipe.empty()) return dataset::ReadRecipe(flags.recipe);
  const auto told = target.info().parameters.find("recipe");
  if (told == target.info().parameters.end())
    return Invalid(
        "--data are pictures, and the model tells no recipe: say with --recipe FILE how they become its "
        "input");
  return dataset::ParseRecipe(told->second, "");
}

// Each picture has the best class that the predictions file has for it.
Result<load::AnswerCheck> TopClassCheck(const std::string& file, const load::PictureRequests& made,
                                        const dataset::Recipe& recipe) {
  const load::TopClasses answers = TRY(load::TopClasses::Read(TRY(ReadTextFile(file))));
  std::vector<std::vector<int>> classes(made.requests.size());
  size_t number = 0;
  for (std::vector<int>& rows : classes) {
    for (int i = 0; i < made.batch; ++i, ++number)
      rows.push_back(TRY(answers.Of(made.names[number % made.names.size()])));
  }
  return load::HasTopClasses(std::move(classes), recipe.first_class);
}

Result<load::Requests> PictureRequests(const LoadFlags& flags, const LoadTarget& target,
                                       const Console& console) {
  const dataset::Recipe recipe = TRY(FindRecipe(flags, target));
  load::PictureOptions options{.batch = flags.batch, .pool_limit = flags.pool};
  if (flags.payload == "pixels") options.payload = load::Payload::kPixels;
  if (flags.payload == "image") options.payload = load::Payload::kImage;
  auto made = TRY(load::MakePictureRequests(target.info(), target.version(), recipe, flags.data, options));
  console.Note(fmt::format("{} of {}; {} rejected, {} left out", Count(std::ssize(made.requests), "request"),
                           Count(std::ssize(made.names), "picture"), Count(made.rejected),
                           Count(made.left_out)));
  load::Requests requests;
  if (flags.check.ends_with(".csv"))
    requests.check = TRY_CONTEXT(TopClassCheck(flags.check, made, recipe), flags.check);
  requests.pool = std::move(made.requests);
  return requests;
}

// Its answer, waited for.
Result<infer::Response> Ask(infer::Service& service, const infer::Request& request) {
  std::promise<Result<infer::Response>> answered;
  infer::Call call;
  call.request = request;
  call.completion = infer::Completion(
      [&](Result<infer::Response> result, const infer::Times&) { answered.set_value(std::move(result)); });
  service.Submit(std::move(call));
  return answered.get_future().get();
}

// Another engine, and other batches, add up in another order: floats may lie this much of an output's largest
// apart.
constexpr double kTolerance = 1e-3;

// What the model in this process makes of each of the requests.
Result<load::AnswerCheck> ProcessCheck(const LoadFlags& flags, const std::vector<infer::Request>& pool,
                                       const Console& console, const Clock& clock) {
  LoadFlags local;
  local.target = flags.check;
  local.engine = flags.engine;
  local.precision = flags.precision;
  local.recipe = flags.recipe;
  local.batch = flags.batch;
  const std::unique_ptr<LoadTarget> target = TRY_CONTEXT(OpenLoadTarget(local, clock, 1), "--check");
  console.Note(fmt::format("the answers to {} are worked out by {}", Count(std::ssize(pool), "request"),
                           target->Title()));
  std::vector<std::vector<infer::Tensor>> expected;
  for (const infer::Request& request : pool) {
    infer::Response response = TRY_CONTEXT(Ask(target->service(), request), "--check " + flags.check);
    expected.push_back(std::move(response.outputs));
  }
  return load::HasOutputs(std::move(expected), kTolerance);
}

Result<load::Requests> TensorRequests(const LoadFlags& flags, const LoadTarget& target) {
  if (flags.payload != "tensor")
    return Invalid(fmt::format("--payload {} sends pictures: name them with --data", flags.payload));
  load::RequestOptions options{
      .batch = flags.batch,
      .shapes = TRY(ParseShapes(flags.shapes)),
      .fill = flags.zero_input ? load::RequestOptions::Fill::kZero : load::RequestOptions::Fill::kRandom,
      .pool = flags.pool,
      .string_data = flags.string_data,
      .string_length = flags.string_length,
      .seed = Seed(static_cast<uint64_t>(flags.seed)).Stream("data"),
      .outputs = {}};
  if (flags.input_data.size() > 1) return Invalid("--input-data is given once");
  const std::string source = flags.input_data.empty() ? "random" : flags.input_data.front();
  const bool checks_data = flags.check == kCheckData;
  if (source == "random" || source == "zero") {
    if (source == "zero") options.fill = load::RequestOptions::Fill::kZero;
    if (checks_data)
      return Invalid(
          "--check needs answers to expect: the validation_data of an --input-data file, or a model after "
          "--check");
    return load::Requests{.pool = TRY(load::MakeRequests(target.info(), target.version(), options)),
                          .check = {}};
  }
  load::InputData data;
  std::error_code ignored;
  if (std::filesystem::is_directory(source, ignored)) {
    data = TRY(load::ReadInputFolder(source, target.info(), target.version(), options));
  } else {
    data = TRY_CONTEXT(
        load::ReadInputData(TRY(ReadTextFile(source)), target.info(), target.version(), options), source);
  }
  load::Requests requests{.pool = std::move(data.requests), .check = {}};
  if (!checks_data) return requests;
  if (data.expected.empty())
    return Invalid(fmt::format("--check: {} says nothing of the answers (validation_data)", source));
  requests.check = load::HasOutputs(std::move(data.expected), 0);
  return requests;
}

// One for each file of --body, the file its one input; without any, one request that has no body.
Result<load::Requests> BodyRequests(const LoadFlags& flags) {
  load::Requests requests;
  uint64_t left = load::kMaxRequestBytes;
  for (const std::string& file : flags.bodies) {
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

Result<load::Requests> MakeRequests(const LoadFlags& flags, const LoadTarget& target, const Console& console,
                                    const Clock& clock) {
  if (!flags.endpoint.empty()) return BodyRequests(flags);
  const bool of_pictures = !flags.data.empty(), by_file = flags.check.ends_with(".csv");
  if (of_pictures && flags.check == kCheckData)
    return Invalid(
        "--check wants the answers to the pictures of --data: the CSV file of weir run --answers, or a "
        "model");
  if (!of_pictures && by_file)
    return Invalid(
        fmt::format("--check {} has the classes of pictures: name those with --data", flags.check));
  if (of_pictures && !by_file && !flags.check.empty() && flags.payload != "tensor")
    return Invalid(
        "--check MODEL gives that model what is sent: leave --payload out, or check against a CSV file");
  load::Requests requests =
      of_pictures ? TRY(PictureRequests(flags, target, console)) : TRY(TensorRequests(flags, target));
  if (!flags.check.empty() && flags.check != kCheckData && !by_file)
    requests.check = TRY(ProcessCheck(flags, requests.pool, console, clock));
  return requests;
}

}  // namespace weir::cli
