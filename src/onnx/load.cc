#include "onnx/load.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "onnx/parse_cost.h"

namespace weir::onnx {
namespace {

// Other model formats that people hand over by mistake, by the identifier that FlatBuffers puts at byte 4, or
// by their first bytes; a file cut to nothing is named too.
std::string_view OtherFormat(std::string_view head) {
  if (head.empty()) return "it is empty";
  const std::string_view identifier = head.size() >= 8 ? head.substr(4, 4) : "";
  if (identifier == "TFL3") return "it is a TensorFlow Lite model; convert it to ONNX";
  if (identifier == "ORTM") return "it is in ORT format; give the .onnx file it was made from";
  if (head.starts_with("PK")) return "it is a zip archive, perhaps a PyTorch checkpoint; export it to ONNX";
  if (head.starts_with("\x89HDF")) return "it is an HDF5 file, perhaps a Keras model; convert it to ONNX";
  if (head.starts_with("version https://git-lfs"))
    return "it is a Git LFS pointer; fetch the file itself (git lfs pull)";
  return "";
}

std::unexpected<Error> NotOnnx(std::string_view why) {
  return Fail(ErrorCode::kCorrupt,
              why.empty() ? "not an ONNX file" : fmt::format("not an ONNX file: {}", why));
}

// ONNX messages have no required field, so nearly any bytes "parse": a model has a version and a graph.
Status CheckIsModel(const pb::ModelProto& model) {
  if (model.ir_version() <= 0) return NotOnnx("it has no IR version");
  if (!model.has_graph()) return NotOnnx("it holds no graph");
  return {};
}

constexpr std::string_view kDoesNotParse = "it is damaged, cut, nested deeper than 100, or of another format";

// Whether a file of `file_bytes`, which `input` is at the beginning of, can be parsed in a sensible memory.
Status CheckParsedBytes(google::protobuf::io::CodedInputStream& input, uint64_t file_bytes) {
  const uint64_t most = MostParsedBytes(file_bytes);
  const auto parsed = EstimateParsedBytes(input, *pb::ModelProto::descriptor(), most);
  if (!parsed) return NotOnnx(kDoesNotParse);
  if (*parsed <= most) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("refused: its {} bytes would take more than {} MiB of memory, so it is made of "
                          "millions of small parts; no tool writes such a network",
                          file_bytes, most >> 20));
}

}  // namespace

Result<pb::ModelProto> ParseModel(std::string_view bytes) {
  if (const std::string_view other = OtherFormat(bytes); !other.empty()) return NotOnnx(other);
  if (bytes.size() > INT_MAX)
    return Fail(ErrorCode::kUnsupported, "larger than 2 GiB; store its weights as external data");
  {
    google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                 static_cast<int>(bytes.size()));
    TRY_STATUS(CheckParsedBytes(input, bytes.size()));
  }
  pb::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return NotOnnx(kDoesNotParse);
  TRY_STATUS(CheckIsModel(model));
  return model;
}

Result<LoadedModel> LoadModel(const std::string& path) {
  // O_NONBLOCK: a named pipe must be an error, not a wait.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return FailErrno(path, errno);
  struct stat status{};
  if (fstat(fd.get(), &status) != 0) return FailErrno(path, errno);
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalidArgument, path + ": not a regular file");
  if (status.st_size > INT_MAX) {
    return Fail(ErrorCode::kUnsupported, path + ": larger than 2 GiB; store its weights as external data");
  }
  LoadedModel loaded{.bytes = static_cast<uint64_t>(status.st_size)};
  std::error_code ignored;
  loaded.path = std::filesystem::canonical(path, ignored).string();
  if (loaded.path.empty()) return Fail(ErrorCode::kNotFound, path + ": went away while it was being read");

  std::array<char, 64> head{};
  const ssize_t got = pread(fd.get(), head.data(), head.size(), 0);
  if (got < 0) return FailErrno(path, errno);
  const std::string_view other = OtherFormat({head.data(), static_cast<size_t>(got)});
  if (!other.empty()) return Context(path, NotOnnx(other).error());

  {
    google::protobuf::io::FileInputStream stream(fd.get());
    google::protobuf::io::CodedInputStream input(&stream);
    const Status fits = CheckParsedBytes(input, loaded.bytes);
    if (!fits && stream.GetErrno() != 0) return FailErrno(path, stream.GetErrno());
    if (!fits) return Context(path, fits.error());
  }
  if (lseek(fd.get(), 0, SEEK_SET) != 0) return FailErrno(path, errno);
  google::protobuf::io::FileInputStream stream(fd.get());
  if (!loaded.model.ParseFromZeroCopyStream(&stream)) {
    if (stream.GetErrno() != 0) return FailErrno(path, stream.GetErrno());
    return Context(path, NotOnnx(kDoesNotParse).error());
  }
  if (const Status status = CheckIsModel(loaded.model); !status) return Context(path, status.error());
  return loaded;
}

}  // namespace weir::onnx
