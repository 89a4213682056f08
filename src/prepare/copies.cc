#include "prepare/copies.h"

#include <fmt/format.h>

#include "dataset/line_reader.h"
#include "dataset/set_text.h"

namespace weir::prepare {

Status AddCopies(dataset::SetWriter& writer, const Copies& copies,
                 const std::function<Status()>& after_each) {
  if (copies.originals == 0 || writer.images() >= copies.wanted) return {};
  TRY(writer.Flush());  // the originals' lines are read from the file
  const std::string path = copies.folder + "/manifest.jsonl";
  int64_t skip = writer.images() % copies.originals;
  while (writer.images() < copies.wanted) {
    dataset::LineReader lines = TRY(dataset::LineReader::Open(path));
    for (int64_t i = 0; i < copies.originals && writer.images() < copies.wanted; ++i) {
      const auto line = TRY(lines.Next());
      if (!line) return Fail(ErrorCode::kIo, fmt::format("{}: has become shorter", path));
      if (i < skip) continue;
      if (copies.stop.stop_requested()) {
        return Fail(ErrorCode::kCancelled, "stopped while copying: the same command goes on from there");
      }
      const dataset::SetEntry entry = TRY_CONTEXT(dataset::ParseSetEntry(*line), path);
      TRY_STATUS(writer.Repeat(entry));
      TRY_STATUS(after_each());
    }
    skip = 0;
  }
  return {};
}

}  // namespace weir::prepare
