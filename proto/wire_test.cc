#include "proto/wire.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace etalon {
namespace {

TEST(Wire, SuccessIsTheEmptyMessage) {
  EXPECT_EQ(ToProto(OkStatus()).ByteSizeLong(), 0u);
  EXPECT_TRUE(FromProto(v1::Status()).ok());
}

TEST(Wire, StatusKeepsEveryField) {
  const Hint hint{.destination = ShardUid(0),
                  .epoch = Epoch(7),
                  .leader = "shard-0-1",
                  .term = Term(3),
                  .number = 0,
                  .text = "task"};
  const Status in(Code::kAborted, Reason::kWrongBucket, "moved", hint);
  std::string bytes = ToProto(in).SerializeAsString();
  v1::Status message;
  ASSERT_TRUE(message.ParseFromString(bytes));
  const Status out = FromProto(message);
  EXPECT_EQ(out.code(), in.code());
  EXPECT_EQ(out.reason(), in.reason());
  EXPECT_EQ(out.message(), in.message());
  EXPECT_EQ(out.hint(), hint);
}

TEST(Wire, AbsentHintFieldsStayAbsent) {
  const v1::Status message = ToProto(Unavailable(Reason::kNonMaster, "not here", {.leader = "b"}));
  EXPECT_FALSE(message.hint().has_destination());
  EXPECT_FALSE(message.hint().has_term());
  EXPECT_EQ(FromProto(message).hint(), (Hint{.leader = "b"}));
  EXPECT_FALSE(ToProto(Internal("x")).has_hint());
}

TEST(Wire, UnknownCodeAndReasonFromANewerProgram) {
  v1::Status message;
  message.set_code(99);
  message.set_reason(static_cast<v1::Reason>(5000));
  const Status status = FromProto(message);
  EXPECT_EQ(status.code(), Code::kUnknown);
  EXPECT_EQ(static_cast<int>(status.reason()), 5000);
  message.set_reason(static_cast<v1::Reason>(-1));
  EXPECT_EQ(FromProto(message).reason(), Reason::kNone);
}

// Parsing refuses a message with a bad string; the check stands on protobuf's own.
TEST(Wire, TextsOfAnyBytesCrossTheWire) {
  std::string text = "key \xff";
  for (int lead = 0; lead < 256; ++lead) {
    for (int second : {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0}) {
      text += {static_cast<char>(lead), static_cast<char>(second), '\x80', '\x80', ' '};
    }
  }
  text += "\xf0\x9f";  // cut short
  v1::Status message;
  ASSERT_TRUE(message.ParseFromString(ToProto(NotFound(text)).SerializeAsString()));
  EXPECT_EQ(FromProto(message).message().substr(0, 5), "key ?");
  const std::string good =
      "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80 \xed\x9f\xbf \xf4\x8f\xbf\xbf";
  EXPECT_EQ(ToProto(NotFound(good)).message(), good);
}

TEST(Wire, Ids) {
  const BucketId bucket{.level = 3, .number = 123456};
  EXPECT_EQ(FromProto(ToProto(bucket)), bucket);
  v1::BucketId absurd;
  absurd.set_level(256);  // must not wrap to level 0
  EXPECT_EQ(FromProto(absurd).level, 255);
  const TransferId id{.source = ShardUid(~0ull), .term = Term(2), .index = LogIndex(9)};
  EXPECT_EQ(FromProto(ToProto(id)), id);
}

// common/reason.h and the proto enum are one list written twice.
TEST(Wire, ReasonsAgreeInNumberAndName) {
  const auto* reasons = v1::Reason_descriptor();
  for (int i = 0; i < reasons->value_count(); ++i) {
    const auto* value = reasons->value(i);
    EXPECT_EQ(value->name(),
              "REASON_" + std::string(ReasonName(static_cast<Reason>(value->number()))));
  }
  for (int number = 0; number <= 0xffff; ++number) {
    if (ReasonName(static_cast<Reason>(number)) == "UNKNOWN") continue;
    EXPECT_NE(reasons->FindValueByNumber(number), nullptr)
        << number << " is in common/reason.h only";
  }
}

TEST(Wire, EveryReasonIsInTheDocs) {
  std::ifstream file(ETALON_SOURCE_DIR "/docs/errors.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto* reasons = v1::Reason_descriptor();
  for (int i = 0; i < reasons->value_count(); ++i) {
    const auto reason = static_cast<Reason>(reasons->value(i)->number());
    const std::string row = "\n| " + std::to_string(reasons->value(i)->number()) + " | " +
                            std::string(ReasonName(reason)) + " |";
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace etalon
