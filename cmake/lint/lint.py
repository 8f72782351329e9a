#!/usr/bin/env python3
"""Rules of the source tree that the compiler does not know. Run with --self-test to see that each rule can fail."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Decision code: told the time, given its randomness, run by its owner's executor.
DETERMINISTIC = ("common/", "env/", "placement/", "engine/", "storage/node/", "router/table/", "router/feed/",
                 "router/call/", "router/node/", "operator/plan/", "operator/manifest/", "sim/")
EXCEPT = ("env/posix/", "sim/main.cc", "engine/store/rocksdb", "engine/store/worker.h")
FORBIDDEN = {
    "a clock": r"\b(system_clock|steady_clock|high_resolution_clock|clock_gettime|gettimeofday)\b",
    "sleeping": r"\b(sleep_for|sleep_until|usleep|nanosleep)\b",
    "a thread": r"\bstd::(thread|jthread|async)\b",
    "unseeded randomness": r"\b(random_device|mt19937|std::rand|srand)\b|\brand\(\)|std::uniform_\w+_distribution",
    "the environment": r"\bgetenv\b",
    "files behind the Disk seam": r"\b(ifstream|ofstream|fstream|fopen)\b|#include <fcntl.h>",
}

# Who may include whom: directory -> what it may include besides itself.
ARROWS = {
    "common": [],
    "proto": ["common"],
    "env": ["common"],
    "placement": ["common"],
    "engine/consensus": ["common", "env", "engine/log"],
    "engine/log": ["common", "env", "engine/consensus/types.h"],
    "engine/store": ["common", "env"],
    "engine/bucket": ["common", "env", "placement", "proto", "engine/store", "engine/consensus/types.h"],
    "engine/transfer": ["common", "env", "placement", "proto", "engine/store", "engine/bucket"],
    "engine/balance": ["common", "env", "placement", "proto", "engine/store", "engine/bucket", "engine/transfer"],
    "storage/node": ["common", "env", "placement", "proto", "engine"],
    "router/table": ["common", "env", "placement", "proto", "router"],
    "router/feed": ["common", "env", "placement", "proto", "router"],
    "router/call": ["common", "env", "placement", "proto", "router"],
    "router/node": ["common", "env", "placement", "proto", "router"],
    "operator/manifest": ["common", "placement", "proto", "operator"],
    "operator/plan": ["common", "placement", "proto", "operator"],
    "rpc": ["common", "env", "proto"],
}
OWN = ("common/", "env/", "placement/", "proto/", "engine/", "storage/", "router/", "operator/", "rpc/", "ctl/", "sim/",
       "bench/", "fuzz/", "sidecar/", "kube/")
GRPC_OK = ("rpc/", "storage/service/", "storage/main.cc", "router/service/", "router/main.cc", "ctl/", "bench/",
           "operator/platform/", "operator/node/", "operator/main.cc", "sidecar/")
MAX_LINES = 620  # about 600


def is_test(path):
    return path.endswith("_test.cc") or "/testing/" in path or path.endswith("testing.h") or "_sim." in path


def code_of(text):
    """The text without comments and strings, line structure kept."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
    keep = lambda m: re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(pattern, keep, text, flags=re.S)


def check(path, text):
    """Problems of one file, as (line, sentence)."""
    problems = []
    code = code_of(text)
    includes = [(text.count("\n", 0, m.start()) + 1, m.group(2), m.group(1) == "<")
                for m in re.finditer(r'^#include ([<"])([^>"]+)[>"]', text, re.M)]
    lines = text.count("\n")
    if lines > MAX_LINES:
        problems.append((lines, f"{lines} lines: split it by ideas (at most {MAX_LINES})"))
    for m in re.finditer(r"\b(TODO|FIXME|XXX)\b", text):
        problems.append((text.count("\n", 0, m.start()) + 1, "unfinished work does not stay in the code"))
    if path.startswith(DETERMINISTIC) and not path.startswith(EXCEPT) and not is_test(path):
        for what, pattern in FORBIDDEN.items():
            for m in re.finditer(pattern, text if pattern.endswith("fcntl.h>") else code):
                problems.append((text.count("\n", 0, m.start()) + 1, f"decision code uses {what}: {m.group(0)}"))
        unordered = set(re.findall(r"unordered_(?:map|set)<[^;{}]*>\s+(\w+)\s*[;={]", code))
        for m in re.finditer(r"for \([^;()]*:\s*\*?(?:\w+(?:\.|->))*(\w+)\)", code):
            if m.group(1) in unordered:
                problems.append((text.count("\n", 0, m.start()) + 1, f"walks the unordered container {m.group(1)}"))
    for line, name, system in includes:
        if system:
            if name.startswith(("grpc", "grpcpp")) and not path.startswith(GRPC_OK):
                problems.append((line, "gRPC belongs to rpc/, services and programs"))
            if name.startswith("rocksdb/") and not path.startswith("engine/store/") and not path.startswith("bench/"):
                problems.append((line, "RocksDB belongs to engine/store/"))
            if name.startswith("cpprest/") and not path.startswith("kube/http/"):
                problems.append((line, "cpprestsdk belongs to kube/http/"))
            continue
        if name.endswith(".grpc.pb.h") and not path.startswith(GRPC_OK):
            problems.append((line, "generated services belong to rpc/, services and programs"))
        if not name.startswith(OWN) or is_test(path):
            continue
        if name.startswith("sim/") and not path.startswith(("sim/", "fuzz/")):
            problems.append((line, "nothing in a program uses sim/"))
        home = max((d for d in ARROWS if path.startswith(d + "/")), key=len, default=None)
        if home and not name.startswith(home + "/"):
            allowed = [d for d in ARROWS[home] if name.startswith(d if d.endswith(".h") else d + "/")]
            if not allowed:
                problems.append((line, f"{home}/ may not include {name}"))
    return problems


def self_test():
    bad = {
        "engine/bucket/a.cc": "auto t = std::chrono::steady_clock::now();\n",
        "engine/log/b.cc": "std::this_thread::sleep_for(x);\n",
        "router/node/c.cc": "std::thread t;\n",
        "placement/d.cc": "std::random_device r;\n",
        "storage/node/e.cc": 'auto x = getenv("X");\n',
        "common/f.cc": "std::ifstream in;\n",
        "engine/store/g.h": '#include "engine/bucket/rows.h"\n',
        "storage/node/h.h": "#include <grpcpp/grpcpp.h>\n",
        "engine/bucket/i.h": "#include <rocksdb/db.h>\n",
        "router/node/j.cc": '#include "sim/world/world.h"\n',
        "engine/bucket/k.cc": "std::unordered_map<int, int> seen_;\nfor (auto& x : seen_) {}\n",
        "common/l.cc": "// TODO\n",
        "common/m.cc": "\n" * 700,
    }
    missed = [path for path, text in bad.items() if not check(path, text)]
    good = {"engine/bucket/a.cc": '// steady_clock is not used\nauto s = "std::thread";\n#include "engine/store/store.h"\n',
            "env/posix/b.cc": "std::thread t;\n", "engine/bucket/c_test.cc": '#include "sim/world/world.h"\n'}
    wrong = [path for path, text in good.items() if check(path, text)]
    for path in missed:
        print(f"self-test: the fault in {path} was not seen")
    for path in wrong:
        print(f"self-test: {path} is fine, but: {check(path, good[path])}")
    return not missed and not wrong


def main():
    if "--self-test" in sys.argv:
        return 0 if self_test() else 1
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "*.h", "*.cc"], capture_output=True, text=True, check=True)
    count = 0
    for path in listed.stdout.split():
        if not (ROOT / path).exists():
            continue
        for line, what in check(path, (ROOT / path).read_text()):
            print(f"{path}:{line}: {what}")
            count += 1
    print(f"{count} problems")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
