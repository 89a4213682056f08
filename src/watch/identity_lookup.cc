#include "watch/identity_lookup.h"

#include <utility>

#include "identity/batches.h"
#include "model/hash.h"

namespace weir::watch {
namespace {

class IndexLookup final : public IdentityLookup {
 public:
  IndexLookup(std::unique_ptr<identity::Index> index, double threshold)
      : index_(std::move(index)), threshold_(threshold) {}

  Result<std::vector<Answer>> Find(const std::vector<std::vector<float>>& embeddings) override {
    const auto found = TRY(index_->Search(embeddings, {.best = 1}));
    std::vector<Answer> answers;
    for (const auto& matches : found) {
      Answer& answer = answers.emplace_back();
      if (matches.empty()) continue;
      answer.similarity = matches.front().score;
      if (answer.similarity >= threshold_) answer.name = matches.front().name;
    }
    return answers;
  }

 private:
  const std::unique_ptr<identity::Index> index_;
  const double threshold_;
};

}  // namespace

Result<std::unique_ptr<IdentityLookup>> OpenIdentities(const IdentityOptions& options) {
  identity::Index::Options open{.threads = options.threads, .background = true};
  open.rows = options.access;
  if (!options.embedding_model.empty()) open.model_hash = TRY(model::HashOfModel(options.embedding_model));
  auto index = TRY(identity::Index::Open(options.folder, open));
  double threshold = options.threshold;
  if (threshold < 0)
    threshold = TRY_CONTEXT(index->Threshold(options.false_alarms), "the threshold; give --threshold");
  return std::make_unique<IndexLookup>(std::move(index), threshold);
}

}  // namespace weir::watch
