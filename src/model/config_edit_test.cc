#include "model/config_edit.h"

#include <gmock/gmock.h>

namespace weir::model {
namespace {

using testing::HasSubstr, testing::Not;

// A model of Triton's Python backend, with fields that weir's own configuration does not have.
constexpr const char* kText = R"(backend: "python" # max_batch_size: 3
max_batch_size: 4
input [ { name: "INPUT0 }" data_type: TYPE_FP32 dims: [ 16 ] } ]
instance_group [ { kind: KIND_GPU count: 1 gpus: [ 0, 1 ] } ]
dynamic_batching { preferred_batch_size: [ 4 ] }
optimization { graph { level: 1 } }
parameters { key: "a" value { string_value: 'it\'s' "two" } }
)";

std::string Edited(const ConfigEdit& edit, std::string_view text = kText) {
  const auto edited = EditConfig(text, edit);
  EXPECT_TRUE(edited) << edited.error().message;
  return edited.value_or("");
}

TEST(EditConfig, LeavesATextAloneThatNothingChanges) { EXPECT_EQ(Edited({}), kText); }

TEST(EditConfig, ChangesOnlyWhatItIsTold) {
  const std::string text =
      Edited({.instances = 3, .max_batch_size = 32, .dynamic_batching = {{.max_queue_delay_us = 500}}});
  EXPECT_THAT(text, HasSubstr("max_batch_size: 32\n"));
  EXPECT_THAT(text, HasSubstr("# max_batch_size: 3\n"));
  EXPECT_THAT(text, Not(HasSubstr("max_batch_size: 4")));
  EXPECT_THAT(text, HasSubstr("instance_group [ { kind: KIND_GPU count: 3 gpus: [ 0, 1 ] } ]\n"));
  EXPECT_THAT(text, HasSubstr("dynamic_batching { max_queue_delay_microseconds: 500 }\n"));
  EXPECT_THAT(text, Not(HasSubstr("preferred_batch_size")));
  EXPECT_THAT(text, HasSubstr("optimization { graph { level: 1 } }"));
  EXPECT_THAT(text, HasSubstr("'it\\'s' \"two\""));
}

TEST(EditConfig, MakesFieldsThatAreNotThere) {
  EXPECT_EQ(Edited({.instances = 2, .max_batch_size = 8}, "name: \"m\""),
            "name: \"m\"\nmax_batch_size: 8\ninstance_group [ { count: 2 } ]\n");
  EXPECT_EQ(Edited({.instances = 2}, "instance_group { kind: KIND_CPU }"),
            "instance_group [ { count: 2 kind: KIND_CPU } ]\n");
}

TEST(EditConfig, TurnsBatchingOff) {
  EXPECT_THAT(Edited({.dynamic_batching = {{.on = false}}}), Not(HasSubstr("dynamic_batching")));
}

TEST(EditConfig, RefusesWhatItCannotChange) {
  const auto several = EditConfig("instance_group [ { count: 1 }, { count: 2 } ]", {.instances = 2});
  EXPECT_EQ(several.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(several.error().message, HasSubstr("2 instance groups"));
  for (const char* bad : {"name: \"m", "input [ { ] }", "a: { b: 1", ": 3", "name:", "input {", "a: \"\\"}) {
    const auto edited = EditConfig(bad, {.instances = 2});
    ASSERT_FALSE(edited) << bad;
    EXPECT_EQ(edited.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(edited.error().message, HasSubstr("line 1"));
  }
}

}  // namespace
}  // namespace weir::model
