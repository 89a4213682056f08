"""weir identities: built, enrolled, searched, deleted; kills, damage and wrong models."""
import json
import os
import random
import signal
import stat
import subprocess

import numpy
import pytest

from conftest import PROGRAM


def people(count, dimension=32, seed=1):
    vectors = numpy.random.default_rng(seed).standard_normal((count, dimension)).astype("<f4")
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


def lines(path, vectors, names=None):
    with open(path, "w", encoding="utf-8") as out:
        for i, vector in enumerate(vectors):
            row = {"embedding": vector.tolist()}
            if names:
                row["name"] = names[i]
            out.write(json.dumps(row) + "\n")
    return path


@pytest.fixture
def index(weir, tmp_path):
    vectors = people(300)
    numpy.save(tmp_path / "v.npy", vectors)
    (tmp_path / "names.txt").write_text("".join(f"person {i}\n" for i in range(300)))
    result = weir.json("identities", "build", tmp_path / "people", "--vectors", tmp_path / "v.npy", "--names", tmp_path / "names.txt", "--threads", 1)
    assert result["added"] == 300
    return tmp_path / "people", vectors


def first_names(result):
    return [query["names"][0]["name"] if query["names"] else None for query in result["matches"]]


def test_finds_its_people_and_rejects_strangers(weir, index, tmp_path):
    folder, vectors = index
    noisy = vectors[:20] + 0.02 * people(20, seed=2)
    result = weir.json("identities", "search", folder, lines(tmp_path / "q.jsonl", noisy), "--threshold", 0.8)
    assert first_names(result) == [f"person {i}" for i in range(20)]
    assert all(query["names"][0]["score"] > 0.9 for query in result["matches"])
    strangers = weir.json("identities", "search", folder, lines(tmp_path / "s.jsonl", people(20, seed=3)), "--threshold", 0.8)
    assert first_names(strangers) == [None] * 20
    # The scores are the cosines, with each way of reading rows and in batches.
    wanted = numpy.sort(vectors @ noisy[7] / numpy.linalg.norm(noisy[7]))[::-1][:5]
    for more in ([], ["--access", "memory"], ["--batch", 8], ["--access", "direct", "--storage-delay", "250us"]):
        done = weir.run("identities", "search", folder, tmp_path / "q.jsonl", "--threshold", -1, "--json", "-", *more, status=None)
        if "direct" in more and done.returncode == 2 and b"use --access map" in done.stderr:
            continue  # this file system or container has no direct reads
        scores = [name["score"] for name in json.loads(done.stdout)["matches"][7]["names"]]
        assert scores == pytest.approx(wanted, abs=0.01)


def test_enrols_deletes_and_exports(weir, index, tmp_path):
    folder, vectors = index
    more = people(3, seed=9)
    weir.run("identities", "enrol", folder, lines(tmp_path / "new.jsonl", more, ["Ada", "Ada", "Grace"]))
    found = weir.json("identities", "search", folder, lines(tmp_path / "q.jsonl", more), "--threshold", 0.9)
    assert first_names(found) == ["Ada", "Ada", "Grace"]
    assert weir.json("identities", "delete", folder, "Ada", "person 5")["deleted"] == 3
    for file in folder.iterdir():
        assert b"Ada" not in file.read_bytes() and b"person 5\0" not in file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert b"not in" in weir.run("identities", "delete", folder, "Ada", status=2).stderr
    names = weir.json("identities", "list", folder, "--with-names")["names"]
    assert len(names) == 300 and "Grace" in names and "person 5" not in names
    weir.run("identities", "export", folder, "-o", tmp_path / "all.jsonl")
    rows = {row["name"]: row["embedding"] for row in map(json.loads, open(tmp_path / "all.jsonl"))}
    assert len(rows) == 300
    assert rows["person 8"] == pytest.approx(vectors[8].tolist(), abs=0.02)
    assert stat.S_IMODE((tmp_path / "all.jsonl").stat().st_mode) == 0o600


def test_kill_9_loses_nothing_that_was_acknowledged(weir, tmp_path):
    folder = tmp_path / "people"
    weir.run("identities", "build", folder, "--dimension", 8)
    vectors = people(200_000, 8)
    rows = [json.dumps({"name": f"n{i}", "embedding": [round(float(x), 4) for x in v]}) for i, v in enumerate(vectors[:40_000])]
    chance, start = random.Random(5), 0
    for _ in range(20):
        process = subprocess.Popen([PROGRAM, "identities", "enrol", folder, "-", "--batch", "50"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        # More rows than the pipe holds keep it busy; it is killed after some acknowledgements.
        writer = subprocess.Popen(["cat", lines_file(tmp_path, rows[start:start + 20_000])], stdout=process.stdin)
        process.stdin.close()
        acknowledged = 0
        for _ in range(chance.randint(1, 30)):
            line = process.stdout.readline()
            if not line.startswith("enrolled "):
                break
            acknowledged = int(line.split()[1])
        os.kill(process.pid, signal.SIGKILL)
        acknowledged = max([acknowledged] + [int(line.split()[1]) for line in process.stdout if line.startswith("enrolled ") and line.endswith("\n")])
        process.wait()
        writer.wait()
        names = set(weir.json("identities", "list", folder, "--with-names")["names"])
        missing = [i for i in range(start, start + acknowledged) if f"n{i}" not in names]
        assert acknowledged > 0 and not missing
        start += 500
    weir.run("identities", "verify", folder)


def lines_file(tmp_path, rows):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_every_kind_of_damage_is_found(weir, index, tmp_path):
    folder, _ = index
    weir.run("identities", "enrol", folder, lines(tmp_path / "n.jsonl", people(2, seed=4), ["a", "b"]))
    chance = random.Random(3)
    files = [path for path in folder.iterdir() if path.name != "lock" and path.stat().st_size > 0]
    assert {path.suffix for path in files} == {".json", ".identities", ".log"}
    for path in files:
        whole = path.read_bytes()
        damaged = [whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1:] for at in (chance.randrange(len(whole)) for _ in range(12))]
        damaged.append(whole + b"more" * 20)
        if path.suffix != ".log":  # the end of a log may be cut off by a power cut
            damaged += [whole[:chance.randrange(len(whole))] for _ in range(4)] + [b""]
        for bytes_ in damaged:
            path.write_bytes(bytes_)
            done = weir.run("identities", "verify", folder, status=None)
            assert done.returncode in (1, 2) and path.name.encode() in done.stderr, (path, done.stderr)
        path.write_bytes(whole)
        missing = path.rename(tmp_path / "away")
        assert weir.run("identities", "verify", folder, status=None).returncode in (1, 2)
        missing.rename(path)
    weir.run("identities", "verify", folder)


def test_a_vector_whose_length_no_number_holds_is_refused(weir, index, tmp_path):
    folder, _ = index
    huge = lines(tmp_path / "huge.jsonl", numpy.full((1, 32), 3e38, dtype="<f4"), ["huge"])
    assert b"its length is larger" in weir.run("identities", "enrol", folder, huge, status=2).stderr
    assert b"its length is larger" in weir.run("identities", "search", folder, huge, status=2).stderr
    numpy.save(tmp_path / "huge.npy", numpy.full((3, 32), 3e38, dtype="<f4"))
    assert b"its length is larger" in weir.run("identities", "build", tmp_path / "new", "--vectors", tmp_path / "huge.npy", status=2).stderr


def test_a_mark_of_utf8_is_no_part_of_the_first_line(weir, index, tmp_path):
    folder, vectors = index
    plain = lines(tmp_path / "plain.jsonl", vectors[:2])
    marked = tmp_path / "marked.jsonl"
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    assert first_names(weir.json("identities", "search", folder, marked)) == ["person 0", "person 1"]
    names = tmp_path / "marked.txt"
    names.write_bytes(b"\xef\xbb\xbf" + b"anna\nb\n")
    numpy.save(tmp_path / "two.npy", vectors[:2])
    weir.run("identities", "build", tmp_path / "new", "--vectors", tmp_path / "two.npy", "--names", names, "--threads", 1)
    assert first_names(weir.json("identities", "search", tmp_path / "new", plain)) == ["anna", "b"]


def test_another_model_is_refused(weir, tmp_path):
    weir.run("model", "make", "identity", "-o", tmp_path)
    weir.run("model", "make", "tiny", "-o", tmp_path)
    weir.run("identities", "build", tmp_path / "p", "--dimension", 8, "--model", tmp_path / "identity")
    rows = lines(tmp_path / "n.jsonl", people(1, 8), ["a"])
    weir.run("identities", "enrol", tmp_path / "p", rows, "--model", tmp_path / "identity")
    assert b"embed the pictures again" in weir.run("identities", "enrol", tmp_path / "p", rows, "--model", tmp_path / "tiny", status=2).stderr


@pytest.mark.parametrize("arguments, said", [
    (["search", "NONE", "QUERY"], "index.json"),
    (["search", "INDEX", "WRONG"], "a query of 3 values, the index has 32"),
    (["enrol", "INDEX", "WRONG"], "3 values, the index has 32"),
    (["enrol", "INDEX", "NAMELESS"], "a name of 0 bytes"),
    (["build", "INDEX", "--dimension", "8"], "holds an index already"),
    (["search", "INDEX", "QUERY", "--storage-delay", "180us"], "--access direct"),
    (["search", "INDEX", "QUERY", "--access", "direct", "--storage-delay", "fast"], "is not a duration"),
])
def test_wrong_use_is_explained(weir, index, tmp_path, arguments, said):
    places = {
        "INDEX": index[0], "NONE": tmp_path / "none", "QUERY": lines(tmp_path / "q.jsonl", people(1)),
        "WRONG": lines(tmp_path / "w.jsonl", people(1, 3), ["x"]), "NAMELESS": lines(tmp_path / "l.jsonl", people(1)),
    }
    done = weir.run("identities", *[places.get(a, a) for a in arguments], status=2)
    assert said in done.stderr.decode()


def test_only_one_process_writes(weir, index):
    holder = subprocess.Popen([PROGRAM, "identities", "enrol", index[0], "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holder.stdin.write((json.dumps({"name": "x", "embedding": [1.0] * 32}) + "\n").encode())
    holder.stdin.flush()
    assert holder.stdout.readline() == b"enrolled 1\n"
    assert b"another process writes" in weir.run("identities", "delete", index[0], "person 1", status=1).stderr
    assert weir.json("identities", "list", index[0])["index"]["identities_vectors"] == 301  # readers need not wait
    holder.stdin.close()
    assert holder.wait() == 0


def test_planted_mates_and_strangers(weir, tmp_path):
    weir.run("identities", "build", tmp_path / "p", "--make", 34_000, "--dimension", 64, "--intrinsic-dimension", 8, "--mate-cosine", 0.8)
    result = weir.json("identities", "evaluate", tmp_path / "p", "--made-mates", 300, "--mate-cosine", 0.8, "--intrinsic-dimension", 8,
                       "--made-strangers", 1000, "--false-alarms", 0.05, "--exact")
    assert result["recall"]["value"] >= 0.98
    assert result["fpir"]["low"] <= 0.06 and result["fpir"]["high"] >= 0.04
    assert result["index"]["lists"] > 1
