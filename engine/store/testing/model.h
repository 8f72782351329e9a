// A store as it should be: a plain map, and random histories for both.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/bytes.h"
#include "common/random.h"
#include "engine/store/store.h"
#include "engine/store/testing/harness.h"
#include "gtest/gtest.h"

namespace etalon::store {

using Model = std::map<std::string, std::string>;

inline void Apply(const Batch& batch, Model* model) {
  for (const Batch::Op& op : batch.ops()) {
    switch (op.kind) {
      case Batch::Kind::kPut:
        (*model)[op.key] = op.value;
        break;
      case Batch::Kind::kDelete:
        model->erase(op.key);
        break;
      case Batch::Kind::kDeleteRange:
        model->erase(model->lower_bound(op.key), model->lower_bound(op.value));
        break;
    }
  }
}

// All of [begin, end) as an iterator shows it; a read error fails the test.
inline Model Dump(const Snapshot& snapshot, std::string_view begin = "",
                  std::string_view end = "") {
  Model out;
  std::string last;
  const auto it = snapshot.NewIterator(begin, end);
  for (; it->Valid(); it->Next()) {
    EXPECT_TRUE(out.empty() || last < it->key()) << "out of order";
    last = std::string(it->key());
    out.emplace(last, it->value());
  }
  EXPECT_TRUE(it->status().ok()) << it->status().ToString();
  return out;
}

inline Model Dump(const Store& store) { return Dump(*store.NewSnapshot()); }

// A write as an owner does it: refused for a busy disk, the same batch is tried again.
inline void MustWrite(Harness& harness, Store& store, Batch batch) {
  Random random(0);
  Status status = store.Write(std::move(batch));
  while (status.reason() == Reason::kOverloaded) {
    harness.Idle(random);
    status =
        store.Write(std::move(batch));  // NOLINT(bugprone-use-after-move): unchanged on failure
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
}

// A random short key: 125 of them, so that operations meet.
inline std::string RandomKey(Random& random) {
  std::string key;
  const std::uint64_t length = random.Between(1, 3);
  for (std::uint64_t i = 0; i < length; ++i) {
    key.push_back(
        "\x01"
        "aA\x7f\xff"[random.Below(5)]);
  }
  return key;
}

inline Batch RandomBatch(Random& random) {
  Batch batch;
  for (std::uint64_t left = random.Between(1, 8); left > 0; --left) {
    const std::uint64_t dice = random.Below(10);
    if (dice < 6) {
      const std::uint64_t size = random.Chance(1, 200) ? 400'000 : random.Below(200);
      batch.Put(RandomKey(random), std::string(size, static_cast<char>(random.Next())));
    } else if (dice < 8) {
      batch.Delete(RandomKey(random));
    } else {
      batch.DeleteRange(RandomKey(random), RandomKey(random));
    }
  }
  return batch;
}

// Where an owner keeps the index of what it applied: beyond the range deletes of RandomBatch.
inline const std::string kIndexKey("\x00index", 6);

inline std::string EncodeIndex(std::uint64_t index) {
  std::string out;
  PutBe64(&out, index);
  return out;
}

inline std::uint64_t IndexOf(const Model& model) {
  const auto it = model.find(kIndexKey);
  std::uint64_t index = 0;
  if (it == model.end()) return 0;
  std::string_view in = it->second;
  EXPECT_TRUE(GetBe64(&in, &index));
  return index;
}

}  // namespace etalon::store
