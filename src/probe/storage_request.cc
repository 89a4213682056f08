#include "probe/storage_request.h"

#include <fmt/format.h>

#include <utility>

#include "base/duration.h"
#include "probe/named_accelerators.h"

namespace weir::probe {
namespace {

ReadOptions ReadsOf(const StorageRequest& request, Duration added) {
  return {.access = request.from_memory ? Access::kMemory : request.access,
          .direct = request.direct,
          .cold = !request.warm,
          .verify = request.verify,
          .ring_depth = request.ring_depth,
          .added = added,
          .memory = nullptr};
}

constexpr int kPictures = 64;  // whose copies a set of pictures is

}  // namespace

Result<StorageProfile> DemandOf(const StorageRequest& request, const std::optional<ModelStep>& model) {
  StorageProfile profile{.name = "own", .sample_bytes = 115'000, .batch = 1, .step = 3500us};
  const std::string card = TRY(ParseAccelerators(request.accelerators)).card;
  const bool published = !card.empty() && request.predictor.empty();
  if (!request.profile.empty()) {
    profile =
        published ? TRY(FindCardProfile(request.profile, card)) : TRY(FindStorageProfile(request.profile));
  }
  if (model) {
    profile.name = "model";
    profile.batch = model->batch;
    profile.step = model->step;
  }
  if (request.batch > 0 && published) profile.step = StepOf(profile, request.batch, 1);
  if (request.batch > 0) profile.batch = request.batch;
  if (request.step_ms >= 0) profile.step = FromSeconds(request.step_ms / 1e3);
  if (request.least_utilisation > 0) profile.least_utilisation = request.least_utilisation / 100;
  return profile;
}

Result<PhaseOptions> PhaseOptionsOf(const StorageRequest& request, const StorageProfile& profile) {
  const NamedAccelerators asked = TRY(ParseAccelerators(request.accelerators));
  const Duration added = TRY_CONTEXT(ParseDuration(request.added, 10s), "--add-latency");
  StorageOptions train{.profile = profile,
                       .least_accelerators = asked.least,
                       .most_accelerators = asked.most,
                       .read = ReadsOf(request, added),
                       .threads = request.threads,
                       .depth = request.depth,
                       .repeats = request.repeats,
                       .steps = request.steps,
                       .limit = FromSeconds(request.limit_s),
                       .timeout = FromSeconds(request.timeout_s),
                       .seed = static_cast<uint64_t>(request.seed),
                       .share = {},
                       .decode = {},
                       .units = {}};
  if (request.decode) train.decode = DecodeWork{request.decode_size, request.decode_size};
  return PhaseOptions{.train = train,
                      .infer = {.streams = request.streams,
                                .frames_per_s = request.frame_rate,
                                .deadline = FromSeconds(request.deadline_ms / 1e3),
                                .record_bytes = static_cast<uint64_t>(request.record_bytes),
                                .threads = request.threads,
                                .limit = train.limit,
                                .timeout = train.timeout},
                      .stream = {.block_bytes = static_cast<uint64_t>(request.block_bytes),
                                 .threads = request.threads,
                                 .direct = request.direct,
                                 .cold = !request.warm,
                                 .limit = train.limit,
                                 .timeout = train.timeout}};
}

Result<MadeSetOptions> MadeSetOf(const StorageRequest& request, const StorageProfile& profile,
                                 const DrawPictures& draw) {
  MadeSetOptions made = request.made;
  if (made.mean_bytes <= 0) made.mean_bytes = profile.sample_bytes;
  if (made.deviation_bytes <= 0) made.deviation_bytes = profile.sample_deviation_bytes;
  made.max_bytes_per_s = request.max_rate_mb * 1e6;
  made.hashes = request.verify;
  made.timeout = FromSeconds(request.timeout_s);
  if (request.NeedsPictures())
    made.pictures = TRY(draw(Seed(static_cast<uint64_t>(request.seed)), kPictures));
  return made;
}

Status CheckStorageRequest(const StorageRequest& request) {
  const auto refuse = [](std::string why) { return Fail(ErrorCode::kInvalidArgument, std::move(why)); };
  TRY_STATUS(cluster::CheckJoin(request.join));
  if (request.join.any()) {
    TRY_STATUS(CheckHostsRequest(request));  // the paths are those of other hosts
  } else {
    TRY_STATUS(CheckPaths(request.paths));
  }
  if (request.direct && request.access == Access::kMmap)
    return refuse("--direct goes with --access pool or io_uring: a mapping has no O_DIRECT");
  if (request.block_bytes % 4096 != 0) return refuse("--block-bytes: a multiple of 4096 is needed");
  const bool streams = request.phase == StoragePhase::kStream || request.phase == StoragePhase::kMix;
  if (streams && (request.access != Access::kPool || request.from_memory || request.added != "0us" ||
                  request.made.format != SetFormat::kFiles || request.verify)) {
    return refuse(
        fmt::format("--phase {} reads whole files in blocks: it has --access pool and --format files, and no "
                    "--source memory, --add-latency or --verify",
                    ToString(request.phase)));
  }
  if (!request.set.empty() && (request.made.format != SetFormat::kFiles || request.verify))
    return refuse("--format and --verify are of a set that is written: leave --set out");
  if (request.verify && request.from_memory)
    return refuse("--verify compares what was read from the storage: leave --source memory out");
  if (request.paths.size() > 1 && !request.set.empty())
    return refuse("--set names one folder: give one PATH, or leave --set out so that each PATH gets a set");
  if (request.paths.size() > 1 && request.phase != StoragePhase::kTrain)
    return refuse(fmt::format("--phase {} reads one storage: give one PATH", ToString(request.phase)));
  if (request.NeedsPictures() && (request.made.format == SetFormat::kRaw || request.made.deviation_bytes > 0))
    return refuse("pictures have sizes of their own: leave --format raw and --sample-deviation out");
  if (request.NeedsPictures() && request.record_bytes > 0 && request.phase != StoragePhase::kAll)
    return refuse("--record-bytes reads parts of files, which are no pictures: leave it out");
  if (request.prepares() && (request.from_memory || request.made.format != SetFormat::kFiles))
    return refuse(fmt::format("--phase {} reads pictures from files: leave --source and --format out",
                              ToString(request.phase)));
  if (request.decode && request.phase != StoragePhase::kTrain && request.phase != StoragePhase::kAll)
    return refuse("--decode goes with --phase train or all");
  if (request.decode && request.from_memory && request.set.empty() &&
      request.made.format != SetFormat::kFiles)
    return refuse("--decode from memory needs --format files");
  if (!request.profile.empty() && !request.profile_from.empty())
    return refuse("--profile and --profile-from both give the demand: leave one out");
  const std::string card = TRY(ParseAccelerators(request.accelerators)).card;
  TRY_STATUS(CheckCard({.card = card,
                        .profile = request.profile,
                        .predictor = request.predictor,
                        .network = request.network,
                        .batch = request.batch}));
  if (!card.empty() && (!request.profile_from.empty() || request.step_ms >= 0))
    return refuse(
        fmt::format("--accelerators {} takes the card's step time: leave --profile-from and --step-ms out",
                    request.accelerators));
  if (!request.engine.empty() && request.profile_from.empty())
    return refuse("--engine runs the model of --profile-from: name one");
  return {};
}

Status CheckHostsRequest(const StorageRequest& request) {
  const auto refuse = [](const char* flag, const char* why) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{} goes with one host: {}", flag, why));
  };
  if (request.phase != StoragePhase::kTrain)
    return refuse("--phase", "several hosts have --phase train only");
  if (request.paths.size() > 1) return refuse("a second PATH", "name the storage that all hosts mount");
  if (request.made.format != SetFormat::kFiles)
    return refuse("--format", "leave it out, or read shards by --set and --record-bytes");
  if (request.verify)
    return refuse("--verify", "leave it out; the checksums stay with the host that wrote the set");
  return {};
}

Result<HostsPlan> HostsPlanOf(const StorageRequest& request, const StorageProfile& profile,
                              const DrawPictures& draw) {
  return HostsPlan{.options = TRY(PhaseOptionsOf(request, profile)).train,
                   .path = request.paths.front(),
                   .set = request.set,
                   .record_bytes = static_cast<uint64_t>(request.record_bytes),
                   .made = TRY(MadeSetOf(request, profile, draw))};
}

}  // namespace weir::probe
