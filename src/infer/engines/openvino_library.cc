#include "infer/engines/openvino_library.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

namespace weir::infer {
namespace {

// The library's scheduler opens one of its parts in a way that ends a program with sanitizers, unless it is
// told.
void AllowSanitizers() {
#ifdef WEIR_SANITIZED
  setenv("TBB_ENABLE_SANITIZERS", "1", 0);
#endif
}

constexpr std::pair<ov_element_type_e, DType> kTypes[] = {
    {ov_element_type_e::BOOLEAN, DType::kBool}, {ov_element_type_e::U8, DType::kUint8},
    {ov_element_type_e::U16, DType::kUint16},   {ov_element_type_e::U32, DType::kUint32},
    {ov_element_type_e::U64, DType::kUint64},   {ov_element_type_e::I8, DType::kInt8},
    {ov_element_type_e::I16, DType::kInt16},    {ov_element_type_e::I32, DType::kInt32},
    {ov_element_type_e::I64, DType::kInt64},    {ov_element_type_e::F16, DType::kFp16},
    {ov_element_type_e::BF16, DType::kBf16},    {ov_element_type_e::F32, DType::kFp32},
    {ov_element_type_e::F64, DType::kFp64},
};

}  // namespace

Result<OpenVinoPtr> OpenVinoLibrary::Open() {
  AllowSanitizers();
  const auto file = TRY(SharedLibrary::Open({.engine = "openvino",
                                             .files = {"libopenvino_c.so.2641", "libopenvino_c.so"},
                                             .folder = "openvino/openvino/libs"}));
  const auto library = std::make_shared<OpenVinoLibrary>();
  TRY_STATUS(library->Bind(file));
  ov_version_t version{};
  TRY_STATUS(library->Check(library->ov_get_openvino_version(&version), "engine openvino"));
  library->version = version.buildNumber;
  library->ov_version_free(&version);
  return library;
}

Status OpenVinoLibrary::Bind(const SharedLibrary& file) {
#define WEIR_BIND(name)                                                                                    \
  name = reinterpret_cast<decltype(name)>(file.Find(#name));                                               \
  if (name == nullptr) {                                                                                   \
    return Fail(ErrorCode::kUnsupported,                                                                   \
                fmt::format("engine openvino: {} has no {}: install the right version with `./dev setup`", \
                            file.path(), #name));                                                          \
  }
  WEIR_OPENVINO_FUNCTIONS(WEIR_BIND)
#undef WEIR_BIND
  return {};
}

Status OpenVinoLibrary::Check(ov_status_e status, std::string_view what, ErrorCode code) const {
  if (status == ov_status_e::OK) return {};
  const char* const told = ov_get_last_err_msg();
  std::string words = told == nullptr ? fmt::format("status {}", static_cast<int>(status)) : told;
  if (told != nullptr) ov_free(told);
  words.erase(words.find_last_not_of('\n') + 1);
  for (char& c : words) c = c == '\n' ? ' ' : c;
  return Fail(code, fmt::format("{}: {}", what, words));
}

Result<DType> FromOpenVino(ov_element_type_e type) {
  for (const auto& [theirs, ours] : kTypes) {
    if (theirs == type) return ours;
  }
  return Fail(ErrorCode::kUnsupported,
              type == ov_element_type_e::STRING
                  ? "openvino computes no tensors of strings: use the onnxruntime engine"
                  : fmt::format("element type {} of openvino is not served", static_cast<int>(type)));
}

ov_element_type_e ToOpenVino(DType dtype) {
  for (const auto& [theirs, ours] : kTypes) {
    if (ours == dtype) return theirs;
  }
  return ov_element_type_e::DYNAMIC;
}

}  // namespace weir::infer
