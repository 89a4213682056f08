#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "base/thread.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "dataset/objects.h"
#include "identity/batches.h"
#include "identity/evaluate.h"
#include "identity/identities_result.h"
#include "identity/index.h"
#include "model/hash.h"
#include "record/provenance.h"

namespace weir::cli {
namespace {

using identity::Index;
using results::IdentitiesResult;

// Flags that several of the commands share.
struct IndexFlags {
  std::string folder, model, json;
  Index::Options options{.threads = 0};  // threads 0: all CPUs

  void AddTo(Flags& flags) {
    flags.Required("DIR", folder, "folder of the index; s3://BUCKET/KEY for commands that only read");
    flags.Text("--json", json, "write the result as JSON to this file; - for standard output");
  }
  void AddModel(Flags& flags) {
    flags.Text(
        "--model", model,
        "model that makes the embeddings: an .onnx file or a model folder; an index of another model is "
        "refused");
  }
  void AddThreads(Flags& flags) {
    flags.Integer("--threads", options.threads, 0, 1024, "threads (0: all CPUs)");
  }
  // The flags of a command that looks up.
  void AddReading(Flags& flags) {
    AddModel(flags);
    AddThreads(flags);
    flags.OneOf("--access", options.rows, identity::kRowAccesses,
                "how rows are read: from a mapping, by direct reads all at once (io_uring), or from memory");
    flags.Time("--storage-delay", options.storage_delay, Duration{}, "",
               "added to each direct read, as 180us: what a slower storage would do; with --access direct");
  }
  Result<std::string> ModelHash() const { return model.empty() ? std::string() : model::HashOfModel(model); }
  // Opens the index: of one in object storage a copy, which is only read.
  Result<std::unique_ptr<Index>> Open(Index::Access access) const {
    Index::Options wanted = options;
    wanted.access = access;
    if (wanted.threads == 0) wanted.threads = UsableCpus();
    if (wanted.storage_delay > Duration{} && wanted.rows != identity::RowAccess::kDirect)
      return Fail(ErrorCode::kInvalidArgument, "--storage-delay goes with --access direct");
    wanted.model_hash = TRY(ModelHash());
    if (!folder.starts_with("s3://")) return Index::Open(folder, wanted);
    if (access == Index::Access::kWrite)
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("{}: an index in object storage is only read; change the folder that it was "
                              "copied from, then write it again",
                              EscapeBytes(folder)));
    return Index::Open(TRY(dataset::ObjectReader({}).CopyOf(folder, {})), wanted);
  }
};

// Names and matches are personal data.
Console IndexConsole(const std::string& json) {
  return Console(json, Console::Stdout::kFree, Console::Readers::kOwner);
}

// Prints the facts of the index and writes the result. Returns the exit status.
Result<int> Finish(const IndexFlags& common, const Console& console, const Index& index,
                   IdentitiesResult result, const std::stop_token& stop) {
  result.index = identity::MakeResult(index.facts());
  console.Text(console.Bold(EscapeBytes(common.folder)) + "\n" + identity::IndexText(result.index));
  result.command = record::CommandLine(CommandLine());
  TRY_STATUS(console.Json(result.ToJson()));
  return stop.stop_requested() ? kInterrupted : kDone;
}

// The frame of a command that works on an index: parses, opens, works, finishes.
using Work = std::function<Result<IdentitiesResult>(Index& index, const Console& console)>;
Result<int> Play(Flags& flags, const Arguments& arguments, const IndexFlags& common, Index::Access access,
                 const std::stop_token& stop, const Work& work) {
  if (const auto status = flags.Parse(arguments)) return *status;
  const Console console = IndexConsole(common.json);
  TRY_STATUS(console.CheckJson());
  const auto index = TRY(common.Open(access));
  IdentitiesResult result = TRY(work(*index, console));
  return Finish(common, console, *index, std::move(result), stop);
}

void AddMade(Flags& flags, identity::MadeIdentities::Options& made) {
  flags.Integer("--intrinsic-dimension", made.intrinsic, 0, 4096,
                "of made vectors (0: isotropic, without structure)");
  flags.Integer("--seed", made.seed, 0, INT64_MAX, "of made vectors");
}

Result<int> Build(const Arguments& arguments, const std::stop_token& stop) {
  IndexFlags common;
  identity::BuildSource wanted{.made = {.dimension = 0}};
  int dimension = 0;
  Index::CreateOptions options;
  Flags flags(
      "identities build", "Makes an index of named embeddings.",
      "weir identities build people --vectors embeddings.npy --names names.txt --model models/arcface");
  common.AddTo(flags);
  flags.Text("--vectors", wanted.vectors,
             "embeddings: a .npy file of float32 [N, dimension], or JSON lines {\"name\", \"embedding\"} (-: "
             "standard input)");
  flags.Text("--names", wanted.names,
             "names of the rows of a .npy file, one a line (default: their numbers)");
  flags.Integer("--make", wanted.make, 0, int64_t{1} << 32,
                "make so many vectors of known structure instead");
  AddMade(flags, wanted.made);
  flags.Integer("--dimension", dimension, 2, static_cast<int>(identity::kMaxDimension),
                "values of an embedding (default: those of --vectors; 512 for --make)");
  common.AddModel(flags);
  flags.Integer("--bits", options.bits, 0, 4,
                "bits a value of the codes in memory: 1, 2 or 4 (0: by the dimension)");
  flags.Number("--mate-cosine", options.mate_cosine, 0.01, 0.99,
               "cosine of the hardest pair of the same person that shall be found");
  common.AddThreads(flags);
  if (const auto status = flags.Parse(arguments)) return *status;
  Console console = IndexConsole(common.json);
  TRY_STATUS(console.CheckJson());
  wanted.threads = common.options.threads > 0 ? common.options.threads : UsableCpus();
  const auto source = TRY(identity::OpenBuildSource(wanted, dimension));
  options.dimension = static_cast<size_t>(dimension);
  options.model_hash = TRY(common.ModelHash());
  const SteadyClock clock;
  const Instant begin = clock.Now();
  TRY_STATUS(Index::Create(common.folder, options));
  const auto index = TRY(common.Open(Index::Access::kWrite));
  IdentitiesResult result;
  if (source != nullptr) {
    const auto progress = [&](uint64_t rows) {
      console.Progress(Seconds(clock.Now() - begin), "read", static_cast<int64_t>(rows), wanted.make,
                       " vectors");
    };
    const auto added = index->Fill(*source, progress, stop);
    console.EndProgress();
    if (!added) return std::unexpected(added.error());
    result.added = *added;
  }
  result.wall_s = Seconds(clock.Now() - begin);
  return Finish(common, console, *index, std::move(result), stop);
}

Result<int> Enrol(const Arguments& arguments, const std::stop_token& stop) {
  IndexFlags common;
  common.options.background = true;
  std::string vectors, names;
  size_t batch = 1000;
  Flags flags("identities enrol",
              "Adds embeddings to an index. Each acknowledged batch survives a kill or a power cut.",
              "weir identities enrol people new.jsonl");
  common.AddTo(flags);
  flags.Required("VECTORS", vectors,
                 "embeddings: JSON lines {\"name\", \"embedding\"} (-: standard input), or a .npy file");
  flags.Text("--names", names, "names of the rows of a .npy file, one a line (default: their numbers)");
  flags.Integer("--batch", batch, 1, 100'000, "most vectors that share one wait for the disk");
  common.AddModel(flags);
  common.AddThreads(flags);
  return Play(flags, arguments, common, Index::Access::kWrite, stop,
              [&](Index& index, const Console& console) -> Result<IdentitiesResult> {
                const auto source = TRY(identity::OpenVectors(vectors, names));
                const bool tells = vectors == "-" && common.json != "-";
                IdentitiesResult result;
                result.enrolled = TRY(identity::EnrolAll(
                    index, *source, batch,
                    [&](uint64_t enrolled) {
                      if (tells) console.Text(fmt::format("enrolled {}\n", enrolled));
                    },
                    stop));
                return result;
              });
}

Result<int> Delete(const Arguments& arguments, const std::stop_token&) {
  IndexFlags common;
  std::vector<std::string> names;
  Flags flags("identities delete",
              "Removes every vector of these names from all files of an index before it returns.",
              "weir identities delete people \"Ada Lovelace\"");
  common.AddTo(flags);
  flags.Texts("NAMES", names, "names; none is removed if one is not there", true);
  common.AddThreads(flags);
  return Play(flags, arguments, common, Index::Access::kWrite, {},
              [&](Index& index, const Console&) -> Result<IdentitiesResult> {
                IdentitiesResult result;
                result.deleted = TRY(index.Delete(names));
                return result;
              });
}

Result<int> List(const Arguments& arguments, const std::stop_token&) {
  IndexFlags common;
  bool with_names = false;
  Flags flags("identities list", "Says what an index holds.", "weir identities list people --with-names");
  common.AddTo(flags);
  flags.Switch("--with-names", with_names, "print the name of each vector, one a line, too");
  return Play(flags, arguments, common, Index::Access::kRead, {},
              [&](Index& index, const Console& console) -> Result<IdentitiesResult> {
                IdentitiesResult result;
                if (!with_names) return result;
                std::vector<std::string> names;
                TRY_STATUS(index.ForEach([&](const identity::RowView& row) -> Status {
                  if (!common.json.empty()) names.push_back(EscapeBytes(row.name));
                  return console.WriteText(EscapeBytes(row.name) + "\n");
                }));
                if (!common.json.empty()) result.names = std::move(names);
                return result;
              });
}

// The flags of a look-up, for search and evaluate.
struct SearchFlags {
  Index::SearchOptions options;
  size_t batch = 1;
  std::optional<double> threshold;
  double false_alarms = 0.01;

  void AddTo(Flags& flags) {
    flags.Number("--false-alarms", false_alarms, 1e-6, 0.9,
                 "share of strangers for whom any name may come up; sets the threshold");
    flags.Number("--threshold", threshold, -1, 1, "least cosine of a match, instead of --false-alarms");
    flags.Integer("--best", options.best, 1, 1000, "names a query at most");
    flags.Integer("--probes", options.probes, 0, 1 << 20, "lists that are scanned (0: as calibrated)");
    flags.Integer("--candidates", options.candidates, 0, 1 << 20,
                  "rows that are ranked again (0: as calibrated)");
    flags.Integer("--batch", batch, 1, 4096, "queries that share one pass");
  }
  // The threshold that the user gave, or that follows from the rate of false alarms.
  Result<Index::SearchOptions> Of(const Index& index) const {
    Index::SearchOptions found = options;
    found.threshold = threshold ? *threshold : TRY(index.Threshold(false_alarms));
    return found;
  }
};

Result<int> Search(const Arguments& arguments, const std::stop_token& stop) {
  IndexFlags common;
  SearchFlags search;
  std::string queries;
  Flags flags("identities search", "Looks up whom embeddings belong to.",
              "weir identities search people faces.jsonl --false-alarms 0.001");
  common.AddTo(flags);
  flags.Required("QUERIES", queries,
                 "embeddings: JSON lines {\"embedding\"} (-: standard input), or a .npy file");
  search.AddTo(flags);
  common.AddReading(flags);
  return Play(flags, arguments, common, Index::Access::kRead, stop,
              [&](Index& index, const Console& console) -> Result<IdentitiesResult> {
                const auto source = TRY(identity::OpenVectors(queries, ""));
                return identity::SearchAll(
                    index, *source,
                    {.search = TRY(search.Of(index)), .batch = search.batch, .matches = !common.json.empty()},
                    SteadyClock(), [&](const std::string& line) { return console.WriteText(line); }, stop);
              });
}

Result<int> Verify(const Arguments& arguments, const std::stop_token& stop) {
  IndexFlags common;
  Flags flags("identities verify", "Reads every byte of an index and compares all checksums.",
              "weir identities verify people");
  common.AddTo(flags);
  return Play(flags, arguments, common, Index::Access::kRead, {},
              [&](Index& index, const Console&) -> Result<IdentitiesResult> {
                TRY_STATUS(index.Verify(stop));
                return IdentitiesResult{.whole = true};
              });
}

Result<int> Export(const Arguments& arguments, const std::stop_token& stop) {
  IndexFlags common;
  std::string output;
  Flags flags(
      "identities export",
      "Writes all names and vectors as JSON lines, which build and enrol read. The file holds personal "
      "data: it is for its owner alone.",
      "weir identities export people -o people.jsonl");
  common.AddTo(flags);
  flags.Required("-o,--output", output, "file for the lines");
  return Play(flags, arguments, common, Index::Access::kRead, {},
              [&](Index& index, const Console&) -> Result<IdentitiesResult> {
                IdentitiesResult result;
                result.exported = TRY(identity::ExportVectors(index, output, stop));
                return result;
              });
}

Result<int> Evaluate(const Arguments& arguments, const std::stop_token& stop) {
  IndexFlags common;
  SearchFlags search;
  identity::EvaluationRequest request;
  bool exact = false;
  Flags flags(
      "identities evaluate",
      "Measures how many known persons an index identifies, for how many strangers it raises an alarm, "
      "and how long a look-up takes.",
      "weir identities evaluate people --mates known.jsonl --strangers others.jsonl");
  common.AddTo(flags);
  flags.Text("--mates", request.mates,
             "JSON lines of embeddings of enrolled names, other than the enrolled ones");
  flags.Text("--strangers", request.strangers, "JSON lines of embeddings of persons who are not enrolled");
  flags.Integer("--made-mates", request.made_mates, 0, 10'000'000,
                "mates of an index that was built with --make");
  flags.Number("--mate-cosine", request.mate_cosine, 0.01, 0.999, "cosine of made mates");
  flags.Integer("--made-strangers", request.made_strangers, 0, 10'000'000, "strangers of the same kind");
  AddMade(flags, request.made);
  flags.Switch("--exact", exact, "compare the mates with every row too, for the recall");
  search.AddTo(flags);
  common.AddReading(flags);
  return Play(flags, arguments, common, Index::Access::kRead, {},
              [&](Index& index, const Console& console) -> Result<IdentitiesResult> {
                const auto queries = TRY(identity::ReadQueries(request, index));
                const identity::EvaluationOptions options{
                    .search = TRY(search.Of(index)), .batch = search.batch, .exact = exact};
                const auto evaluation = TRY(identity::Evaluate(index, queries.mates, queries.strangers,
                                                               options, SteadyClock(), stop));
                IdentitiesResult result = identity::MakeResult(evaluation, options.search.threshold);
                console.Text(identity::EvaluationText(console.style(), result));
                return result;
              });
}

struct Command {
  const char* name;
  const char* summary;
  Result<int> (*run)(const Arguments&, const std::stop_token&);
};
constexpr Command kCommands[] = {
    {"build", "makes an index", Build},
    {"enrol", "adds embeddings, durably", Enrol},
    {"delete", "removes names from all files", Delete},
    {"list", "says what an index holds", List},
    {"search", "looks up whom embeddings belong to", Search},
    {"evaluate", "measures identification, false alarms and latency", Evaluate},
    {"verify", "compares all checksums", Verify},
    {"export", "writes names and vectors", Export},
};

void Usage(std::FILE* to) {
  fmt::print(to,
             "Keeps an index of named embeddings, and looks up whom an embedding belongs to.\n\n"
             "Usage: weir identities COMMAND DIR ...\n\nSubcommands:\n");
  for (const Command& command : kCommands) fmt::print(to, "  {:<10} {}\n", command.name, command.summary);
  fmt::print(to,
             "\nExample:\n"
             "  weir identities build people --vectors embeddings.npy --names names.txt\n"
             "  weir identities search people faces.jsonl\n");
}

}  // namespace

int Identities(const Arguments& arguments) {
  const std::string which = arguments.empty() ? "" : arguments.front();
  const auto* command = std::ranges::find_if(kCommands, [&](const Command& c) { return c.name == which; });
  if (command == std::end(kCommands)) {
    const bool help = which == "--help" || which == "-h";
    Usage(help ? stdout : stderr);
    return help ? kDone : kBadInput;
  }
  const Interrupt interrupt;
  const Result<int> status = command->run({arguments.begin() + 1, arguments.end()}, interrupt.token());
  if (!status && status.error().code == ErrorCode::kCancelled) return kInterrupted;
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
