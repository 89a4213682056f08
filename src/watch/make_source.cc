#include <fmt/format.h>

#include "watch/camera_source.h"
#include "watch/http_source.h"
#include "watch/libav_source.h"
#include "watch/made_source.h"
#include "watch/source.h"

namespace weir::watch {

Result<std::unique_ptr<Source>> MakeSource(const StreamSpec& spec, const SourceOptions& options,
                                           const Clock& clock) {
  switch (spec.kind) {
    case StreamKind::kMade:
      return MadeSource::Create(spec.made, options, clock);
    case StreamKind::kMjpegHttp:
      return HttpSource::Create(spec, options, clock);
    case StreamKind::kCamera:
      return std::make_unique<CameraSource>(spec, options, clock, OpenCameraDevice);
    case StreamKind::kFile:
    case StreamKind::kRtsp:
      return MakeLibavSource(spec, options, clock);
  }
  return Fail(ErrorCode::kInternal, "a stream of no kind");
}

}  // namespace weir::watch
