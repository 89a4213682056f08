// Names of embeddings, from an index of identities in this process.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "identity/segment.h"
#include "watch/pipeline.h"

namespace weir::watch {

struct IdentityOptions {
  std::string folder;           // of the index
  std::string embedding_model;  // whose hash the index must have; a file or folder; empty: not compared
  double false_alarms = 0.001;  // share of strangers that may be given a name: the threshold follows from it
  double threshold = -1;        // least cosine, instead of the one that follows; -1: that one
  identity::RowAccess access = identity::RowAccess::kMap;  // of its rows
  int threads = 1;                                         // of a look-up
};

// Opens the index to read, and follows what another process enrols. kInvalidArgument where another model made
// it; other errors are those of the index.
Result<std::unique_ptr<IdentityLookup>> OpenIdentities(const IdentityOptions& options);

}  // namespace weir::watch
