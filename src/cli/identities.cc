#include <fmt/format.h>

#include <memory>
#include <stop_token>

#include "base/duration.h"
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
  std::string folder, model, access = "map", delay = "0", json;
  int threads = 0;

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
    flags.Integer("--threads", threads, 0, 1024, "threads (default: all CPUs)");
  }
  void AddAccess(Flags& flags) {
    flags.Choice("--access", access, {"map", "direct", "memory"},
                 "how rows are read: from a mapping, by direct reads all at once (io_uring), or from memory");
    flags.Text("--storage-delay", delay,
               "added to each direct read, as 180us: what a slower storage would do; with --access direct");
  }
  // The flags of a command that looks up.
  void AddReading(Flags& flags) {
    AddModel(flags);
    AddThreads(flags);
    AddAccess(flags);
  }
  Result<std::unique_ptr<Index>> Open(Index::Access wanted) const {
    Index::Options options{.access = wanted};
    options.threads = threads > 0 ? threads : UsableCpus();
    options.rows = TRY(identity::ParseRowAccess(access));
    options.storage_delay = TRY_CONTEXT(ParseDuration(delay, 1s), "--storage-delay");
    if (options.storage_delay > Duration{} && access != "direct")
      return Fail(ErrorCode::kInvalidArgument, "--storage-delay goes with --access direct");
    if (!model.empty()) options.model_hash = TRY(model::HashOfModel(model));
    return Index::Open(TRY(PlaceOf(wanted)), options);
  }
  // Returns the folder of the index: of one in object storage a copy, which is only read.
  Result<std::string> PlaceOf(Index::Access wanted) const {
    if (!folder.starts_with("s3://")) return folder;
    if (wanted == Index::Access::kWrite)
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("{}: an index in object storage is only read; change the folder that it was "
                              "copied from, then write it again",
                              EscapeBytes(folder)));
    return dataset::ObjectReader({}).CopyOf(folder, {});
  }
};

// Prints the facts and writes the result.
Status Report(const Console& console, const std::string& folder, const identity::IndexFacts& facts,
              IdentitiesResult result) {
  result.index = identity::MakeResult(facts);
  console.Text(console.Bold(EscapeBytes(folder)) + "\n" + identity::IndexText(result.index));
  result.command = record::CommandLine(CommandLine());
  return console.Json(result.ToJson());
}

struct MadeFlags {
  int64_t intrinsic = 16, seed = 1;
  void AddTo(Flags& flags) {
    flags.Integer64("--intrinsic-dimension", intrinsic, 0, 4096,
                    "of made vectors (default 16; 0: isotropic, without structure)");
    flags.Integer64("--seed", seed, 0, INT64_MAX, "of made vectors (default 1)");
  }
  identity::MadeIdentities::Options Options(size_t dimension) const {
    return {.dimension = dimension,
            .intrinsic = static_cast<size_t>(intrinsic),
            .seed = static_cast<uint64_t>(seed)};
  }
};

Result<int> Build(const Arguments& arguments, const std::stop_token& stop) {
  IndexFlags common;
  MadeFlags made;
  identity::BuildSource wanted;
  int dimension = 0, bits = 0;
  Index::CreateOptions options;
  Flags flags(
      "identities build", "Makes an index of named embeddings.",
      "weir identities build people --vectors embeddings.npy --names names.txt --model models/arcface");
  common.AddTo(flags);
  flags.Text("--vectors", wanted.vectors,
             "embeddings: a .npy file of float32 [N, dimension], or JSON lines {\"name\", \"embedding\"} (-: "
             "standard "
             "input)");
  flags.Text("--names", wanted.names,
             "names of the rows of a .npy file, one a line (default: their numbers)");
  flags.Integer64("--make", wanted.make, 0, int64_t{1} << 32,
                  "make so many vectors of known structure instead");
  made.AddTo(flags);
  flags.Integer("--dimension", dimension, 2, static_cast<int>(identity::kMaxDimension),
                "values of an embedding (default: those of --vectors; 512 for --make)");
  common.AddModel(flags);
  flags.Integer("--bits", bits, 0, 4,
                "bits a value of the codes in memory: 1, 2 or 4 (default by the dimension)");
  flags.Number("--mate-cosine", options.mate_cosine, 0.01, 0.99,
               "cosine of the hardest pair of the same person that shall be found (default 0.4)");
  common.AddThreads(flags);
  if (const auto status = flags.Parse(arguments)) return *status;
  Console console(common.json);
  TRY_STATUS(console.CheckJson());
  wanted.made = made.Options(0);
  wanted.threads = common.threads > 0 ? common.threads : UsableCpus();
  const auto source = TRY(identity::OpenBuildSource(wanted, dimension));
  options.dimension = static_cast<size_t>(dimension);
  options.bits = bits;
  if (!common.model.empty()) options.model_hash = TRY(model::HashOfModel(common.model));
  const SteadyClock clock;
  const Instant begin = clock.Now();
  TRY_STATUS(Index::Create(common.folder, options));
  auto index = TRY(common.Open(Index::Access::kWrite));
  IdentitiesResult result;
  if (source != nullptr) {
    const auto added = index->Fill(
        *source,
        [&](uint64_t rows) {
          console.Progress(Seconds(clock.Now() - begin), "read", static_cast<int64_t>(rows), wanted.make,
                           " vectors");
        },
        stop);
    console.EndProgress();
    if (!added) return std::unexpected(added.error());
    result.added = *added;
  }
  result.wall_s = Seconds(clock.Now() - begin);
  TRY_STATUS(Report(console, common.folder, index->facts(), std::move(result)));
  return kDone;
}

Result<int> Enrol(const Arguments& arguments, const std::stop_token& stop) {
  IndexFlags common;
  std::string vectors, names;
  int64_t batch = 1000;
  Flags flags("identities enrol",
              "Adds embeddings to an index. Each acknowledged batch survives a kill or a power cut.",
              "weir identities enrol people new.jsonl");
  common.AddTo(flags);
  flags.Required("VECTORS", vectors,
                 "embeddings: JSON lines {\"name\", \"embedding\"} (-: standard input), or a .npy file");
  flags.Text("--names", names, "names of the rows of a .npy file, one a line (default: their numbers)");
  flags.Integer64("--batch", batch, 1, 100'000,
                  "most vectors that share one wait for the disk (default 1,000)");
  common.AddModel(flags);
  common.AddThreads(flags);
  if (const auto status = flags.Parse(arguments)) return *status;
  const Console console(common.json);
  TRY_STATUS(console.CheckJson());
  auto source = TRY(identity::OpenVectors(vectors, names));
  Index::Options options{.access = Index::Access::kWrite, .background = true};
  options.threads = common.threads > 0 ? common.threads : UsableCpus();
  if (!common.model.empty()) options.model_hash = TRY(model::HashOfModel(common.model));
  auto index = TRY(Index::Open(TRY(common.PlaceOf(Index::Access::kWrite)), options));
  const bool tells = vectors == "-" && common.json != "-";
  IdentitiesResult result;
  result.enrolled = TRY(identity::EnrolAll(
      *index, *source, static_cast<size_t>(batch),
      [&](uint64_t enrolled) {
        if (!tells) return;
        console.Text(fmt::format("enrolled {}\n", enrolled));
        std::fflush(stdout);
      },
      stop));
  TRY_STATUS(Report(console, common.folder, index->facts(), std::move(result)));
  return stop.stop_requested() ? kInterrupted : kDone;
}

Result<int> Delete(const Arguments& arguments) {
  IndexFlags common;
  std::vector<std::string> names;
  Flags flags("identities delete",
              "Removes every vector of these names from all files of an index before it returns.",
              "weir identities delete people \"Ada Lovelace\"");
  common.AddTo(flags);
  flags.Texts("NAMES", names, "names; none is removed if one is not there", true);
  common.AddThreads(flags);
  if (const auto status = flags.Parse(arguments)) return *status;
  const Console console(common.json);
  TRY_STATUS(console.CheckJson());
  auto index = TRY(common.Open(Index::Access::kWrite));
  IdentitiesResult result;
  result.deleted = TRY(index->Delete(names));
  TRY_STATUS(Report(console, common.folder, index->facts(), std::move(result)));
  return kDone;
}

Result<int> List(const Arguments& arguments) {
  IndexFlags common;
  bool with_names = false;
  Flags flags("identities list", "Says what an index holds.", "weir identities list people --with-names");
  common.AddTo(flags);
  flags.Switch("--with-names", with_names, "print the name of each vector, one a line, too");
  if (const auto status = flags.Parse(arguments)) return *status;
  const Console console(common.json);
  TRY_STATUS(console.CheckJson());
  auto index = TRY(common.Open(Index::Access::kRead));
  IdentitiesResult result;
  if (with_names) {
    std::vector<std::string> names;
    TRY_STATUS(index->ForEach([&](const identity::RowView& row) -> Status {
      if (!common.json.empty()) names.push_back(EscapeBytes(row.name));
      return console.WriteText(EscapeBytes(row.name) + "\n");
    }));
    if (!common.json.empty()) result.names = std::move(names);
  }
  TRY_STATUS(Report(console, common.folder, index->facts(), std::move(result)));
  return kDone;
}

// The threshold that the user gave or that follows from the rate of false alarms.
struct ThresholdFlags {
  double threshold = -2, false_alarms = 0.01;
  void AddTo(Flags& flags) {
    flags.Number("--false-alarms", false_alarms, 1e-6, 0.9,
                 "share of strangers for whom any name may come up (default 0.01); sets the threshold");
    flags.Number("--threshold", threshold, -1, 1, "least cosine of a match, instead of --false-alarms");
  }
  Result<double> Of(const Index& index) const {
    return threshold >= -1 ? threshold : index.Threshold(false_alarms);
  }
};

struct SearchFlags {
  int64_t best = 5, probes = 0, candidates = 0, batch = 1;
  void AddTo(Flags& flags) {
    flags.Integer64("--best", best, 1, 1000, "names a query at most (default 5)");
    flags.Integer64("--probes", probes, 0, 1 << 20, "lists that are scanned (default: as calibrated)");
    flags.Integer64("--candidates", candidates, 0, 1 << 20,
                    "rows that are ranked again (default: as calibrated)");
    flags.Integer64("--batch", batch, 1, 4096, "queries that share one pass (default 1)");
  }
  Index::SearchOptions Options(double threshold) const {
    return {.best = static_cast<size_t>(best),
            .threshold = threshold,
            .probes = static_cast<size_t>(probes),
            .candidates = static_cast<size_t>(candidates)};
  }
};

Result<int> Search(const Arguments& arguments, const std::stop_token& stop) {
  IndexFlags common;
  SearchFlags search;
  ThresholdFlags threshold;
  std::string queries;
  Flags flags("identities search", "Looks up whom embeddings belong to.",
              "weir identities search people faces.jsonl --false-alarms 0.001");
  common.AddTo(flags);
  flags.Required("QUERIES", queries,
                 "embeddings: JSON lines {\"embedding\"} (-: standard input), or a .npy file");
  threshold.AddTo(flags);
  search.AddTo(flags);
  common.AddReading(flags);
  if (const auto status = flags.Parse(arguments)) return *status;
  const Console console(common.json);
  TRY_STATUS(console.CheckJson());
  auto source = TRY(identity::OpenVectors(queries, ""));
  auto index = TRY(common.Open(Index::Access::kRead));
  const double least = TRY(threshold.Of(*index));
  IdentitiesResult result = TRY(identity::SearchAll(
      *index, *source,
      {.search = search.Options(least),
       .batch = static_cast<size_t>(search.batch),
       .matches = !common.json.empty()},
      SteadyClock(), [&](const std::string& line) { return console.WriteText(line); }, stop));
  TRY_STATUS(Report(console, common.folder, index->facts(), std::move(result)));
  return stop.stop_requested() ? kInterrupted : kDone;
}

Result<int> Verify(const Arguments& arguments, const std::stop_token& stop) {
  IndexFlags common;
  Flags flags("identities verify", "Reads every byte of an index and compares all checksums.",
              "weir identities verify people");
  common.AddTo(flags);
  if (const auto status = flags.Parse(arguments)) return *status;
  const Console console(common.json);
  TRY_STATUS(console.CheckJson());
  auto index = TRY(common.Open(Index::Access::kRead));
  TRY_STATUS(index->Verify(stop));
  IdentitiesResult result;
  result.whole = true;
  TRY_STATUS(Report(console, common.folder, index->facts(), std::move(result)));
  return kDone;
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
  if (const auto status = flags.Parse(arguments)) return *status;
  const Console console(common.json);
  TRY_STATUS(console.CheckJson());
  auto index = TRY(common.Open(Index::Access::kRead));
  IdentitiesResult result;
  result.exported = TRY(identity::ExportVectors(*index, output, stop));
  TRY_STATUS(Report(console, common.folder, index->facts(), std::move(result)));
  return kDone;
}

Result<int> Evaluate(const Arguments& arguments, const std::stop_token& stop) {
  IndexFlags common;
  SearchFlags search;
  ThresholdFlags threshold;
  MadeFlags made;
  std::string mates_file, strangers_file;
  int64_t made_mates = 0, made_strangers = 0;
  double cosine = 0.4;
  identity::EvaluationOptions options;
  Flags flags(
      "identities evaluate",
      "Measures how many known persons an index identifies, for how many strangers it raises an alarm, "
      "and how long a look-up takes.",
      "weir identities evaluate people --mates known.jsonl --strangers others.jsonl");
  common.AddTo(flags);
  flags.Text("--mates", mates_file,
             "JSON lines of embeddings of enrolled names, other than the enrolled ones");
  flags.Text("--strangers", strangers_file, "JSON lines of embeddings of persons who are not enrolled");
  flags.Integer64("--made-mates", made_mates, 0, 10'000'000, "mates of an index that was built with --make");
  flags.Number("--mate-cosine", cosine, 0.01, 0.999, "cosine of made mates (default 0.4)");
  flags.Integer64("--made-strangers", made_strangers, 0, 10'000'000, "strangers of the same kind");
  made.AddTo(flags);
  flags.Switch("--exact", options.exact, "compare the mates with every row too, for the recall");
  threshold.AddTo(flags);
  search.AddTo(flags);
  common.AddReading(flags);
  if (const auto status = flags.Parse(arguments)) return *status;
  const Console console(common.json);
  TRY_STATUS(console.CheckJson());
  auto index = TRY(common.Open(Index::Access::kRead));
  identity::EvaluationQueries queries{.mates = TRY(identity::ReadVectors(mates_file)),
                                      .strangers = TRY(identity::ReadVectors(strangers_file))};
  if (made_mates + made_strangers > 0) {
    const identity::MadeIdentities identities(made.Options(index->dimension()));
    AddMadeMates(identities, index->facts().rows, static_cast<uint64_t>(made_mates), cosine, queries);
    AddMadeStrangers(identities, static_cast<uint64_t>(made_strangers), queries);
  }
  if (queries.mates.empty() && queries.strangers.empty())
    return Fail(ErrorCode::kInvalidArgument, "give --mates, --strangers, --made-mates or --made-strangers");
  const double least = TRY(threshold.Of(*index));
  options.search = search.Options(least);
  options.batch = static_cast<size_t>(search.batch);
  const SteadyClock clock;
  const auto evaluation =
      TRY(identity::Evaluate(*index, queries.mates, queries.strangers, options, clock, stop));
  IdentitiesResult result = identity::MakeResult(evaluation, least);
  console.Text(identity::EvaluationText(console.style(), result));
  TRY_STATUS(Report(console, common.folder, index->facts(), std::move(result)));
  return kDone;
}

constexpr const char* kHelp =
    "Keeps an index of named embeddings, and looks up whom an embedding belongs to.\n\n"
    "Usage: weir identities COMMAND DIR ...\n\n"
    "Subcommands:\n"
    "  build      makes an index\n"
    "  enrol      adds embeddings, durably\n"
    "  delete     removes names from all files\n"
    "  list       says what an index holds\n"
    "  search     looks up whom embeddings belong to\n"
    "  evaluate   measures identification, false alarms and latency\n"
    "  verify     compares all checksums\n"
    "  export     writes names and vectors\n\n"
    "Example:\n"
    "  weir identities build people --vectors embeddings.npy --names names.txt\n"
    "  weir identities search people faces.jsonl\n";

}  // namespace

int Identities(const Arguments& arguments) {
  const std::string which = arguments.empty() ? "" : arguments.front();
  const Arguments rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  const Interrupt interrupt;
  const std::stop_token stop = interrupt.token();
  Result<int> status = kBadInput;
  if (which == "build") {
    status = Build(rest, stop);
  } else if (which == "enrol") {
    status = Enrol(rest, stop);
  } else if (which == "delete") {
    status = Delete(rest);
  } else if (which == "list") {
    status = List(rest);
  } else if (which == "search") {
    status = Search(rest, stop);
  } else if (which == "evaluate") {
    status = Evaluate(rest, stop);
  } else if (which == "verify") {
    status = Verify(rest, stop);
  } else if (which == "export") {
    status = Export(rest, stop);
  } else {
    const bool help = which == "--help" || which == "-h";
    fmt::print(help ? stdout : stderr, "{}", kHelp);
    return help ? kDone : kBadInput;
  }
  if (!status && status.error().code == ErrorCode::kCancelled) return kInterrupted;
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
