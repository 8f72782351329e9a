// etalonctl: looks at a collection and changes it. Exit codes: see ctl/output.h and
// docs/etalonctl.md.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "ctl/commands.h"

namespace {

using namespace etalon;       // NOLINT: the program's own namespace
using namespace etalon::ctl;  // NOLINT

struct Flags {
  std::string data = ".";
  std::string output = "table";
  double timeout_seconds = 5;
  std::string shard, to, status, space, key, record, value, file, function, args, task, replica,
      release, mode = "rw";
  std::uint32_t bucket = 0, limit = 100, shard_num = 0;
  bool verify = false, yes = false;
};

v1::Mode ModeOf(const std::string& name) {
  if (name == "ro") return v1::MODE_RO;
  if (name == "re") return v1::MODE_RE;
  if (name == "bro") return v1::MODE_BRO;
  if (name == "bre") return v1::MODE_BRE;
  return v1::MODE_RW;
}

}  // namespace

int main(int argc, char** argv) {
  Flags f;
  std::function<Status(Target&, Format)> command;
  CLI::App app("Looks at an Etalon collection and changes it.");
  app.require_subcommand(1);
  const char* data = std::getenv("ETALON_DATA");
  if (data != nullptr) f.data = data;
  app.add_option("--data", f.data,
                 "Directory of the collection (of the operator's --data); also ETALON_DATA");
  app.add_option("-o,--output", f.output, "table or json")->check(CLI::IsMember({"table", "json"}));
  app.add_option("--timeout", f.timeout_seconds, "Seconds to wait for one answer")
      ->check(CLI::PositiveNumber);
  app.fallthrough();
  const auto add = [&](const char* name, const char* about,
                       std::function<Status(Target&, Format)> run) {
    CLI::App* sub = app.add_subcommand(name, about);
    sub->callback([&command, run = std::move(run)] { command = run; });
    return sub;
  };
  const auto with_key = [&](auto&& run) {
    return [&f, run](Target& t, Format format) -> Status {
      t.Observe();
      ETALON_ASSIGN_OR_RETURN(const v1::Target key, ParseKey(t, f.key));
      return run(t, format, key);
    };
  };
  const auto modes = CLI::IsMember({"rw", "ro", "re", "bro", "bre"});

  add("status", "The tree of shards, replicas and routers, and what is being waited for",
      [&](Target& t, Format o) { return ShowStatus(t, o, f.verify); })
      ->add_flag("--verify", f.verify, "Compare the replicas by checksum");
  add("shards", "Each shard's buckets, etalon and disbalance",
      [](Target& t, Format o) { return ShowShards(t, o); });
  auto* buckets = add("buckets", "Buckets with their states", [&](Target& t, Format o) {
    return ShowBuckets(t, o, f.shard, f.status, f.limit);
  });
  buckets->add_option("--shard", f.shard, "Only of this shard");
  buckets->add_option("--status", f.status, "Only in this state, e.g. SENDING");
  buckets->add_option("--limit", f.limit, "At most so many of each shard");
  add("bucket", "One bucket on every shard that knows it",
      [&](Target& t, Format o) { return ShowBucket(t, o, f.bucket); })
      ->add_option("bucket", f.bucket)
      ->required();
  add("rebalancer", "State and progress of the rebalancer",
      [](Target& t, Format o) { return ShowRebalancer(t, o); });
  add("route", "Where a sharding key lives",
      with_key([](Target& t, Format o, const v1::Target& k) { return ShowRoute(t, o, k); }))
      ->add_option("key", f.key, "The sharding key, or bucket:N")
      ->required();
  add("plan", "What another number of shards would move (nothing is changed)",
      [&](Target& t, Format o) { return ShowPlan(t, o, f.shard_num); })
      ->add_option("--shard-num", f.shard_num)
      ->required();
  add("scale", "Writes another shardNum into the manifest",
      [&](Target& t, Format) { return Scale(t, f.shard_num); })
      ->add_option("shards", f.shard_num)
      ->required();
  for (const bool unpin : {false, true}) {
    add(unpin ? "unpin" : "pin", unpin ? "Lets a bucket move again" : "Keeps a bucket where it is",
        [&f, unpin](Target& t, Format) { return PinBucket(t, f.bucket, unpin); })
        ->add_option("bucket", f.bucket)
        ->required();
  }
  auto* move = add("move", "Moves one bucket to another shard",
                   [&](Target& t, Format) { return MoveBucket(t, f.bucket, f.to); });
  move->add_option("bucket", f.bucket)->required();
  move->add_option("shard", f.to)->required();
  auto* split = add("split", "Moves half of a shard's buckets to another one, as one unit",
                    [&](Target& t, Format) { return SplitShard(t, f.shard, f.to, f.task); });
  split->add_option("source", f.shard)->required();
  split->add_option("target", f.to)->required();
  split->add_option("--task", f.task, "Name of the task: asking again with it is the same task")
      ->required();
  auto* switchover = add("switchover", "Hands a shard's leadership over",
                         [&](Target& t, Format) { return Switchover(t, f.shard, f.to); });
  switchover->add_option("shard", f.shard)->required();
  switchover->add_option("replica", f.to, "To this one; the best one if left out");
  auto* recover =
      add("recover", "After a majority of a shard's disks is lost: one replica goes on alone",
          [&](Target& t, Format) { return RecoverReplica(t, f.replica, f.yes); });
  recover->add_option("replica", f.replica)->required();
  recover->add_flag("--yes-lose-data", f.yes, "The other disks are really gone");

  auto* release =
      add("release", "Ends the quarantine of a bucket on one shard", [&](Target& t, Format) {
        return ReleaseBucket(t, f.bucket, f.shard, f.release == "active");
      });
  release->add_option("bucket", f.bucket)->required();
  release->add_option("shard", f.shard)->required();
  release
      ->add_option("--to", f.release,
                   "active: it is served from here again; garbage: its data is deleted here")
      ->required()
      ->check(CLI::IsMember({"active", "garbage"}));

  auto* get = add("get", "Reads a record", with_key([&](Target& t, Format, const v1::Target& k) {
                    return Get(t, k, f.space, f.record, ModeOf(f.mode));
                  }));
  get->add_option("space", f.space)->required();
  get->add_option("shard-key", f.key)->required();
  get->add_option("key", f.record)->required();
  get->add_option("--mode", f.mode)->check(modes);
  for (const char* function : {"put", "insert", "update"}) {
    const char* about = function[0] == 'p'   ? "Writes a record"
                        : function[0] == 'i' ? "Writes a record that must not exist"
                                             : "Writes a record that must exist";
    auto* put =
        add(function, about, with_key([&f, function](Target& t, Format, const v1::Target& k) {
              return Put(t, k, function, f.space, f.record, f.value);
            }));
    put->add_option("space", f.space)->required();
    put->add_option("shard-key", f.key)->required();
    put->add_option("key", f.record)->required();
    put->add_option("value", f.value)->required();
  }
  auto* del =
      add("delete", "Deletes a record", with_key([&](Target& t, Format, const v1::Target& k) {
            return Delete(t, k, f.space, f.record);
          }));
  del->add_option("space", f.space)->required();
  del->add_option("shard-key", f.key)->required();
  del->add_option("key", f.record)->required();
  auto* scan = add("scan", "Records of one sharding key, or of a whole bucket (bucket:N)",
                   with_key([&](Target& t, Format o, const v1::Target& k) {
                     return Scan(t, o, k, f.space, f.limit);
                   }));
  scan->add_option("space", f.space)->required();
  scan->add_option("shard-key", f.key)->required();
  scan->add_option("--limit", f.limit);
  add("import", "Puts a file of JSON lines", [&](Target& t, Format) { return Import(t, f.file); })
      ->add_option("file", f.file)
      ->required();
  auto* call = add("call", "Calls a function with JSON arguments",
                   with_key([&](Target& t, Format, const v1::Target& k) {
                     return Call(t, k, f.function, f.args, ModeOf(f.mode));
                   }));
  call->add_option("function", f.function)->required();
  call->add_option("shard-key", f.key)->required();
  call->add_option("args", f.args,
                   "e.g. '{\"space\": \"orders\", \"key\": \"MQ==\"}' (bytes are base64)");
  call->add_option("--mode", f.mode)->check(modes);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  auto target = Target::Open(f.data, std::chrono::duration_cast<Duration>(
                                         std::chrono::duration<double>(f.timeout_seconds)));
  const Status status = target.ok()
                            ? command(*target, f.output == "json" ? Format::kJson : Format::kTable)
                            : target.status();
  if (!status.ok()) std::fprintf(stderr, "etalonctl: %s\n", status.ToString().c_str());
  return ExitCode(status);
}
