// Embeddings with names, as people bring them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "identity/index.h"

namespace weir::identity {

// Parses one line {"name": "...", "embedding": [...]}.
Result<Index::Enrolment> ParseVectorLine(std::string_view line);
// Parses JSON lines; empty lines are skipped. kCorrupt names the line, from 1.
Result<std::vector<Index::Enrolment>> ParseVectorLines(std::string_view text);
std::string FormatVectorLine(const Index::Enrolment& row);

}  // namespace weir::identity
