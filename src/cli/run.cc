#include <optional>
#include <stop_token>

#include "cli/flags.h"
#include "cli/run_verb.h"
#include "cli/server_place.h"
#include "run/session.h"

namespace weir::cli {
namespace {

struct Wanted {
  run::RunRequest request;
  bool strict = false;
};

std::optional<int> ParseFlags(const Arguments& arguments, Wanted& w) {
  run::RunRequest& r = w.request;
  r.command = CommandLine();
  Flags flags("run",
              "Runs a model over pictures: reads, decodes, prepares, infers, prints. Times every stage and "
              "names the bottleneck.",
              "weir run made/resnet50 made/pictures --answers answers.csv");
  flags.Required("MODEL", r.model,
                 ".onnx file, model folder, or http://HOST:PORT/NAME or grpc://HOST:PORT/NAME of a server; "
                 "HOST:PORT,HOST:PORT for several servers");
  flags.OneOf("--balance", r.balance, infer::kBalances,
              "policy over several servers; grpc-round-robin is the gRPC library's own");
  flags.Texts("DATA", r.data, "files, folders (recursive) or prepared sets", true);
  flags.Text("--recipe", r.recipe,
             "recipe that makes the model's input of a picture (default: the model's recipe.yaml)");
  flags.Repeated("--allow-link", r.allow_links,
                 "Folder that links in the model's folder may lead below. May be given again.");
  flags.OneOf("--payload", r.payload, infer::kPayloads,
              "form in which pictures are sent to a server: its input, uint8 pixels that it normalises, or "
              "files that it decodes");
  flags.Text(
      "--engine", r.engine,
      "engine: onnxruntime, openvino or emulated:base=1ms,per_item=1.9ms (default: as the model says)");
  flags.Text(
      "--device", r.device,
      "device: cpu (default), cuda:N, cuda:UUID, cuda:all, gpu:N or npu (Intel, with openvino); several "
      "with commas");
  flags.OneOf("--preprocess", r.preprocess, infer::kPreprocess,
              "place where pixels are normalised: cpu (default), or gpu (CUDA: a quarter of the bytes)");
  flags.Switch("--cuda-graph", r.cuda_graph, "record each batch size once and launch it whole (CUDA)");
  flags.Integer64("--gpu-memory-mb", r.gpu_memory_mb, 0, 1 << 24,
                  "most MiB that an instance on CUDA takes (0: no limit)");
  flags.Text("--precision", r.precision,
             "arithmetic of the model's floats: f32 (default), bf16, f16, and tf32 on CUDA");
  flags.Integer("--threads", r.threads, 0, 4096,
                "CPU threads of the engine in all (0: all that this process may use)");
  flags.Integer("--streams", r.streams, 0, 4096,
                "batches that compute at the same time on those threads (0: one for each thread in async "
                "mode, 1 in sync mode)");
  flags.Text("--cache-dir", r.cache_dir, "folder for compiled models, if the engine keeps them");
  flags.Integer("-b,--batch", r.batch, 0, 65536, "pictures in a batch (0: 8, or the model's fixed batch)");
  flags.OneOf("--mode", r.mode, infer::kModes, "sync: one batch at a time, without overlap");
  flags.Integer("--in-flight", r.in_flight, 0, 4096,
                "batches in flight in async mode (0: enough to keep the engine busy)");
  flags.Integer("--decode-threads", r.decode_threads, 0, 4096,
                "threads that read and decode (0: one for each core in async mode, 1 in sync mode)");
  flags.Switch("--no-files", r.no_files, "load all data into memory before the clock starts");
  flags.Integer("--repeat-data", r.repeat_data, 1, 1'000'000, "passes over the data");
  flags.Integer("--top", r.top, 1, 1000, "number of classes in each answer");
  flags.Text("--answers", r.answers, "predictions file (CSV); - for standard output");
  flags.Switch("--tolerate-damage", r.tolerate_damage,
               "accept damaged pictures as far as they can be decoded");
  flags.Integer64("--max-pixels", r.max_pixels, 1, int64_t{1} << 40,
                  "largest picture that is accepted, in pixels");
  flags.Integer("--max-file-bytes", r.max_file_bytes, 1, int64_t{1} << 40,
                "largest file that is accepted, in bytes");
  AddServerPlace(flags, r.server);
  flags.Switch("--strict", w.strict, "exit with status 1 if any picture was rejected");
  flags.Text("--json", r.json, "write the result as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

Result<int> RunModel(const Wanted& w, const std::stop_token& stop) {
  const run::RunRequest& request = w.request;
  Console console(request.json, request.answers == "-" ? Console::Stdout::kTaken : Console::Stdout::kFree);
  TRY_STATUS(console.CheckJson());
  const SteadyClock clock;
  const auto hooks = HooksOf<run::SessionHooks>(console, "run");
  const run::RunEnd end =
      TRY(run::RunOver(request, MakeServerAccess(clock), console.style(), hooks, clock, stop));
  console.Text(end.text);
  TRY_STATUS(console.Json(end.result.ToJson()));
  TRY_STATUS(end.whole);
  if (end.interrupted) return kInterrupted;
  return end.failed > 0 || (w.strict && end.rejected > 0) ? kJobFailed : kDone;
}

}  // namespace

int Run(const Arguments& arguments) { return RunVerb<Wanted>(arguments, ParseFlags, RunModel); }

}  // namespace weir::cli
