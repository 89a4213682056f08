#include "identity/batches.h"

#include <fmt/format.h>

#include <utility>

#include "base/json.h"
#include "identity/identities_result.h"

namespace weir::identity {

using results::IdentitiesResult;

Result<std::unique_ptr<VectorSource>> OpenBuildSource(const BuildSource& wanted, int& dimension) {
  constexpr int kUsualDimension = 512;
  if (!wanted.vectors.empty() && wanted.make > 0)
    return Fail(ErrorCode::kInvalidArgument, "--vectors and --make exclude each other");
  if (!wanted.vectors.empty())
    return PeekDimension(TRY(OpenVectors(wanted.vectors, wanted.names)), dimension);
  if (wanted.make > 0) {
    if (dimension == 0) dimension = kUsualDimension;
    MadeIdentities::Options made = wanted.made;
    made.dimension = static_cast<size_t>(dimension);
    return MakeVectorSource(MadeIdentities(made), static_cast<uint64_t>(wanted.make), wanted.threads);
  }
  if (dimension == 0)
    return Fail(ErrorCode::kInvalidArgument, "give --vectors, --make, or --dimension for an empty index");
  return std::unique_ptr<VectorSource>();
}

Result<uint64_t> EnrolAll(Index& index, VectorSource& source, size_t batch,
                          const std::function<void(uint64_t)>& told, const std::stop_token& stop) {
  uint64_t enrolled = 0;
  while (!stop.stop_requested()) {
    const auto rows = TRY(source.Next(batch));
    if (rows.empty()) break;
    if (const Status status = index.Enrol(rows); !status)
      return Context(fmt::format("after {} enrolled", enrolled), status.error());
    enrolled += rows.size();
    if (told) told(enrolled);
  }
  return enrolled;
}

Result<IdentitiesResult> SearchAll(const Index& index, VectorSource& source, const SearchAllOptions& options,
                                   const Clock& clock, const std::function<Status(const std::string&)>& say,
                                   const std::stop_token& stop) {
  std::vector<double> search_us;
  std::vector<IdentitiesResult::Query> kept;
  uint64_t count = 0;
  while (!stop.stop_requested()) {
    const auto rows = TRY(source.Next(options.batch));
    if (rows.empty()) break;
    std::vector<std::vector<float>> vectors;
    for (const auto& row : rows) vectors.push_back(row.vector);
    const Instant begin = clock.Now();
    const auto found = TRY(index.Search(vectors, options.search));
    search_us.push_back(Microseconds(clock.Now() - begin));
    for (size_t q = 0; q < found.size(); ++q, ++count) {
      IdentitiesResult::Query query{.number = count, .name = EscapeBytes(rows[q].name), .matches = {}};
      std::string text = fmt::format("query {}:", count);
      for (const auto& match : found[q]) {
        query.matches.push_back({.name = EscapeBytes(match.name), .score = match.score});
        text += fmt::format(" {} {:.3f}", query.matches.back().name, match.score);
      }
      TRY_STATUS(say(text + (found[q].empty() ? " nobody\n" : "\n")));
      if (options.matches) kept.push_back(std::move(query));
    }
  }
  IdentitiesResult result;
  result.matches = std::move(kept);
  result.queries = count;
  result.threshold = options.search.threshold;
  result.search_us = LatencyOf(search_us);
  return result;
}

void AddMadeMates(const MadeIdentities& made, uint64_t rows, uint64_t count, double cosine,
                  EvaluationQueries& queries) {
  for (uint64_t i = 0; i < count && rows > 0; ++i) {
    const uint64_t number = rows * i / count;
    queries.mates.push_back({MadeIdentities::Name(number), made.Mate(number, cosine)});
  }
}

// Numbers that no index holds.
void AddMadeStrangers(const MadeIdentities& made, uint64_t count, EvaluationQueries& queries) {
  constexpr uint64_t kFirst = uint64_t{1} << 40;
  for (uint64_t i = 0; i < count; ++i) queries.strangers.push_back({"", made.Vector(kFirst + i)});
}

Result<EvaluationQueries> ReadQueries(const EvaluationRequest& request, const Index& index) {
  EvaluationQueries queries{.mates = TRY(ReadVectors(request.mates)),
                            .strangers = TRY(ReadVectors(request.strangers))};
  if (request.made_mates + request.made_strangers > 0) {
    MadeIdentities::Options made = request.made;
    made.dimension = index.dimension();
    const MadeIdentities identities(made);
    AddMadeMates(identities, index.facts().rows, request.made_mates, request.mate_cosine, queries);
    AddMadeStrangers(identities, request.made_strangers, queries);
  }
  if (queries.mates.empty() && queries.strangers.empty())
    return Fail(ErrorCode::kInvalidArgument, "give --mates, --strangers, --made-mates or --made-strangers");
  return queries;
}

}  // namespace weir::identity
