// Work over all vectors of a source, some at a time: enrolment and look-ups, and the mates and strangers of
// an evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "identity/index.h"
#include "identity/made.h"
#include "identity/vectors_file.h"
#include "results/identities_result.h"

namespace weir::identity {

// The vectors of a new index: those of a file, or made ones.
struct BuildSource {
  std::string vectors, names;  // a file, as OpenVectors takes it
  int64_t make = 0;            // so many made ones instead
  MadeIdentities::Options made;
  int threads = 1;  // that make them
};
// Opens it; null for an empty index. Sets `dimension` to that of the vectors where it is 0. kInvalidArgument
// says what to give.
Result<std::unique_ptr<VectorSource>> OpenBuildSource(const BuildSource& wanted, int& dimension);

// Enrols all vectors, `batch` at a time, and returns how many. `told` is called after each durable batch with
// the number so far. Ends early after `stop`. An error says how many were enrolled.
Result<uint64_t> EnrolAll(Index& index, VectorSource& source, size_t batch,
                          const std::function<void(uint64_t)>& told, const std::stop_token& stop);

struct SearchAllOptions {
  Index::SearchOptions search;
  size_t batch = 1;      // queries that share a pass
  bool matches = false;  // keep them in the result
};
// Looks all vectors up. `say` is called with a line for people for each query; its error ends the search.
// Returns the part of the result that is the search's. Ends early after `stop`.
Result<results::IdentitiesResult> SearchAll(const Index& index, VectorSource& source,
                                            const SearchAllOptions& options, const Clock& clock,
                                            const std::function<Status(const std::string&)>& say,
                                            const std::stop_token& stop);

// The queries of an evaluation. Mates are spread over the `rows` of an index of made vectors.
struct EvaluationQueries {
  std::vector<Enrolment> mates, strangers;
};
void AddMadeMates(const MadeIdentities& made, uint64_t rows, uint64_t count, double cosine,
                  EvaluationQueries& queries);
void AddMadeStrangers(const MadeIdentities& made, uint64_t count, EvaluationQueries& queries);

// The queries that a person asks for: files, made ones, or both.
struct EvaluationRequest {
  std::string mates, strangers;  // files, as ReadVectors takes them; empty: none
  uint64_t made_mates = 0, made_strangers = 0;
  double mate_cosine = 0.4;      // of made mates
  MadeIdentities::Options made;  // its dimension is the index's
};
// kInvalidArgument for a request without queries; other errors as ReadVectors.
Result<EvaluationQueries> ReadQueries(const EvaluationRequest& request, const Index& index);

}  // namespace weir::identity
