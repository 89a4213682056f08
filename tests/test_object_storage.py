"""Pictures, sets and models in object storage: against a server in this process that checks signatures and fails on request."""
import itertools
import json
import os
import resource
import subprocess
import time

import pytest
from conftest import PROGRAM, read_answers
from s3_server import SECRET, S3Server

RECIPE = "layout: NCHW\nresize: {width: 32, height: 32}\n"


@pytest.fixture
def store():
    with S3Server() as server:
        yield server


@pytest.fixture
def s3(weir, store, tmp_path):
    """Runs the program with the store's settings in the environment."""

    class Bound:
        environment = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, **store.environment(tmp_path / "cache")}

        def run(self, *arguments, **kwargs):
            return weir.run(*arguments, env=self.environment, **kwargs)

        def json(self, *arguments, **kwargs):
            return weir.json(*arguments, env=self.environment, **kwargs)

    return Bound()


@pytest.fixture(scope="session")
def pictures(made):
    return sorted((made[1] / "pictures").rglob("*.jpg"))


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE)
    return path


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def fill(store, pictures, prefix="photos/"):
    for picture in pictures:
        store.put("bucket", prefix + picture.name, picture.read_bytes())


def test_a_prefix_is_prepared_as_the_folder_is(weir, s3, store, pictures, recipe, tmp_path):
    fill(store, pictures)
    store.put("bucket", "photos/.hidden.jpg", b"x")
    store.put("bucket", "photos/readme.txt", b"x")
    store.put("bucket", "photos-of-others/a.jpg", b"x")
    store.page = 37
    folder = tmp_path / "photos"
    folder.mkdir()
    for picture in pictures:
        (folder / picture.name).write_bytes(picture.read_bytes())
    weir.run("prepare", folder, "--recipe", recipe, "-o", tmp_path / "local")
    result = s3.json("prepare", "s3://bucket/photos", "--recipe", recipe, "-o", tmp_path / "remote")
    assert result["images"] == len(pictures)
    assert contents(tmp_path / "remote") == contents(tmp_path / "local")


def test_a_set_is_written_with_set_json_last_and_not_twice(s3, store, pictures, recipe, tmp_path):
    fill(store, pictures[:20])
    command = ["prepare", "s3://bucket/photos/", "--recipe", recipe, "--format", "tar", "-o", "s3://bucket/set"]
    s3.run(*command)
    puts = [path for method, path in store.requests if method == "PUT"]
    assert puts[-1] == "/bucket/set/set.json" and json.loads(store.get("bucket", "set/set.json"))["images"] == 20
    s3.run(*command)
    assert [path for method, path in store.requests if method == "PUT"] == puts
    # What stands in the store is a set: it is copied, and verified by the hash of each record.
    result = s3.json("prepare", "--verify", "s3://bucket/set")
    assert result["faults"] == 0 and result["sets"][0]["images"] == 20


def test_parts_made_by_several_machines_are_joined(weir, s3, store, pictures, recipe, tmp_path):
    fill(store, pictures[:30])
    common = ["prepare", "s3://bucket/photos", "--recipe", recipe, "--format", "tar"]
    for part in ("1/2", "2/2"):
        s3.environment["WEIR_CACHE_DIR"] = str(tmp_path / part.replace("/", "-"))
        s3.run(*common, "--part", part, "-o", "s3://bucket/parts")
    s3.run("prepare", "--join", "s3://bucket/parts", "-o", tmp_path / "joined")
    s3.run(*common, "-o", tmp_path / "whole")
    assert contents(tmp_path / "joined") == contents(tmp_path / "whole")


def test_a_large_shard_goes_in_parts_and_comes_in_ranges(s3, store, tmp_path, pictures):
    (tmp_path / "in").mkdir()
    for i in range(3):
        (tmp_path / "in" / f"{i}.jpg").write_bytes(pictures[i].read_bytes() + os.urandom(7 << 20))
    s3.run("prepare", tmp_path / "in", "--format", "tar", "-o", "s3://bucket/set")
    posts = [path for method, path in store.requests if method == "POST"]
    assert any("uploads" in path for path in posts) and not store.uploads
    store.requests.clear()
    assert s3.json("prepare", "--verify", "s3://bucket/set")["faults"] == 0
    assert sum(".tar" in path for method, path in store.requests if method == "GET") >= 3
    # What was copied once is not read again.
    store.requests.clear()
    s3.run("prepare", "--verify", "s3://bucket/set")
    assert not any(".tar" in path for method, path in store.requests if method == "GET")


def test_parts_that_are_not_joined_are_an_error_and_given_up(s3, store, tmp_path, pictures):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jpg").write_bytes(pictures[0].read_bytes() + os.urandom(9 << 20))
    store.fault = lambda number, method, path: "join"
    said = s3.run("prepare", tmp_path / "in", "--format", "tar", "-o", "s3://bucket/set", status=1).stderr.decode()
    assert "were not joined: InternalError" in said and store.aborted == 1
    assert store.keys("bucket", "set/set.json") == []


def test_failures_lose_double_and_mix_nothing(weir, s3, store, pictures, recipe, tmp_path):
    fill(store, pictures)
    s3.run("prepare", "s3://bucket/photos", "--recipe", recipe, "-o", tmp_path / "calm")
    seen = {}

    def fault(number, method, path):
        # The first two requests for every tenth object are refused, those for every tenth other are cut.
        seen[path] = seen.get(path, 0) + 1
        if ".jpg" not in path or seen[path] > 2:
            return None
        return {"3": "503", "7": "cut"}.get(path.removesuffix(".jpg")[-1])

    store.fault = fault
    result = s3.json("prepare", "s3://bucket/photos", "--recipe", recipe, "-o", tmp_path / "stormy")
    assert result["images"] == len(pictures) and not result.get("rejected")
    assert contents(tmp_path / "stormy") == contents(tmp_path / "calm")


@pytest.mark.parametrize("fault", ["chunked", "close"])
def test_answers_of_every_form_give_the_same_set(s3, store, pictures, recipe, tmp_path, fault):
    fill(store, pictures)
    s3.run("prepare", "s3://bucket/photos", "--recipe", recipe, "-o", tmp_path / "calm")
    # Every third, so that connections that carried whole answers meet the other kind.
    store.fault = lambda number, method, path: fault if ".jpg" in path and number % 3 == 0 else None
    result = s3.json("prepare", "s3://bucket/photos", "--recipe", recipe, "-o", tmp_path / "set")
    assert result["images"] == len(pictures) and contents(tmp_path / "set") == contents(tmp_path / "calm")


def test_a_store_that_gives_an_object_no_more_loses_nothing(s3, store, pictures, recipe, tmp_path):
    fill(store, pictures[:20])
    s3.run("prepare", "s3://bucket/photos", "--recipe", recipe, "-o", tmp_path / "calm")
    store.fault = lambda number, method, path: "503" if path.endswith(pictures[11].name) else None
    s3.environment["AWS_MAX_ATTEMPTS"] = "2"
    command = ["prepare", "s3://bucket/photos", "--recipe", recipe, "-o", tmp_path / "set"]
    assert "503 SlowDown (2 tries)" in s3.run(*command, status=1).stderr.decode()
    assert not (tmp_path / "set" / "set.json").exists()
    store.fault = None
    s3.run(*command)
    assert contents(tmp_path / "set") == contents(tmp_path / "calm")


def test_an_object_that_changes_is_named_and_never_mixed(s3, store, pictures, tmp_path):
    fill(store, pictures[:10])
    name = pictures[3].name
    store.fault = lambda number, method, path: "change" if path.endswith(name) else None
    said = s3.run("prepare", "s3://bucket/photos", "-o", tmp_path / "set", status=1).stderr.decode()
    assert f"s3://bucket/photos/{name}: the object was changed while it was read" in said
    assert not (tmp_path / "set" / "set.json").exists()


@pytest.mark.parametrize("key", ["a=b.jpg", "a b+c.jpg", "a//b.jpg", "\u00e4\u4e2d.jpg", "a%20b&c?d#e.jpg", "a'(b)!*.jpg"])
def test_keys_of_any_form_are_signed_and_found(s3, store, pictures, tmp_path, key):
    store.put("bucket", "odd/" + key, pictures[0].read_bytes())
    assert s3.json("prepare", "s3://bucket/odd", "-o", tmp_path / "set")["images"] == 1
    (tmp_path / "list").write_text(f"s3://bucket/odd/{key}\n")
    assert s3.json("prepare", "--list", tmp_path / "list", "-o", tmp_path / "listed")["images"] == 1


def test_wrong_credentials_are_named_and_never_shown(s3, store, pictures, tmp_path):
    fill(store, pictures[:2])
    s3.environment["AWS_SECRET_ACCESS_KEY"] = "wrong" + SECRET
    done = s3.run("prepare", "s3://bucket/photos", "-o", tmp_path / "set", status=2)
    said = (done.stdout + done.stderr).decode()
    assert "403 SignatureDoesNotMatch" in said and SECRET not in said
    del s3.environment["AWS_SECRET_ACCESS_KEY"], s3.environment["AWS_ACCESS_KEY_ID"]
    s3.environment["HOME"] = str(tmp_path)
    assert "AWS_ACCESS_KEY_ID" in s3.run("prepare", "s3://bucket/photos", "-o", tmp_path / "set", status=2).stderr.decode()
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(f"[work]\naws_access_key_id = TESTACCESSKEY\naws_secret_access_key = {SECRET}\n")
    s3.environment["AWS_PROFILE"] = "work"
    result = s3.run("prepare", "s3://bucket/photos", "-o", tmp_path / "set", "--json", "-")
    assert json.loads(result.stdout)["images"] == 2 and SECRET not in (result.stdout + result.stderr).decode()
    assert not any(SECRET.encode() in text for text in contents(tmp_path / "set").values())


def test_what_is_not_there_and_what_is_no_store_is_named(s3, store, tmp_path):
    assert "no object is there" in s3.run("prepare", "s3://bucket/none/", "-o", tmp_path / "set", status=2).stderr.decode()
    assert "not there (404" in s3.run("prepare", "s3://bucket/none.jpg", "-o", tmp_path / "set", status=2).stderr.decode()
    assert "3 to 63" in s3.run("prepare", "s3://x/none", "-o", tmp_path / "set", status=2).stderr.decode()
    assert "folder or to s3://" in s3.run("prepare", "--make", 1, "-o", "http://127.0.0.1:1/set", status=2).stderr.decode()
    s3.environment["AWS_ENDPOINT_URL"] = "http://store.example:9000"
    assert "AWS_ALLOW_HTTP" in s3.run("prepare", "s3://bucket/a", "-o", tmp_path / "set", status=2).stderr.decode()


def test_compressed_objects_are_rejected(s3, store, pictures, tmp_path):
    fill(store, pictures[:1])
    store.extra_headers = {"Content-Encoding": "gzip"}
    result = s3.json("prepare", "s3://bucket/photos", "-o", tmp_path / "set", status=None)
    assert result["images"] == 0 and result["rejected"] == {"unsupported": 1}


def test_a_range_with_status_200_is_taken_by_its_header(s3, store, tmp_path, pictures):
    store.put("bucket", "big.jpg", pictures[0].read_bytes() + os.urandom(20 << 20))
    store.range_status = 200
    assert s3.json("prepare", "s3://bucket/big.jpg", "-o", tmp_path / "set")["images"] == 1


def test_run_reads_pictures_and_sets(weir, s3, store, made, tmp_path):
    model, folder = made
    store.put_folder("bucket", "sets/one/", folder)
    weir.run("run", model, folder, "--answers", tmp_path / "local.csv")
    s3.run("run", model, "s3://bucket/sets/one", "--answers", tmp_path / "remote.csv")
    local, remote = read_answers(tmp_path / "local.csv"), read_answers(tmp_path / "remote.csv")
    assert len(remote) == 200

    def by_name(answers):
        return {name.rsplit("/", 1)[-1]: [{k: v for k, v in row.items() if k != "file"} for row in rows] for name, rows in answers.items()}

    assert by_name(remote) == by_name(local)
    s3.run("run", model, "s3://bucket/sets/one/pictures", "--answers", tmp_path / "bare.csv")
    assert len(read_answers(tmp_path / "bare.csv")) == 200


def test_serve_reads_its_models_from_the_store(s3, store, made, tmp_path):
    store.put_folder("bucket", "models/tiny/", made[0])
    place = tmp_path / "place.json"
    server = subprocess.Popen([PROGRAM, "serve", "--model-repository", "s3://bucket/models", "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0", "--json", place],
                              env=s3.environment, stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + 60
        while not place.exists() and server.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        assert place.exists(), server.stderr.read()
        assert "tiny" in [model["name"] for model in json.loads(place.read_text())["models"]]
    finally:
        server.terminate()
        assert server.wait(60) == 0


def test_a_picture_of_a_web_server(weir, pictures, tmp_path):
    with S3Server(signed=False) as server:
        server.put("files", "a.jpg", pictures[0].read_bytes())
        assert weir.json("prepare", f"{server.url}/files/a.jpg", "-o", tmp_path / "set")["images"] == 1
        server.gives_ranges = False
        assert weir.json("prepare", f"{server.url}/files/a.jpg", "-o", tmp_path / "plain")["images"] == 1
        server.fault = lambda number, method, path: "/files/a.jpg" if path.endswith("moved.jpg") else None
        assert weir.json("prepare", f"{server.url}/files/moved.jpg", "-o", tmp_path / "moved")["images"] == 1
        server.fault = lambda number, method, path: "/files/round.jpg"
        assert "redirect" in weir.run("prepare", f"{server.url}/files/round.jpg", "-o", tmp_path / "round", status=1).stderr.decode()


@pytest.mark.timing
def test_the_latency_of_a_store_is_hidden_by_requests_ahead(s3, store, pictures, tmp_path):
    """200 objects at 50 ms each take 10 s one after the other."""
    fill(store, pictures)

    def slow(number, method, path):
        time.sleep(0.05 if ".jpg" in path else 0)

    store.fault = slow
    result = s3.json("prepare", "s3://bucket/photos", "--workers", 1, "-o", tmp_path / "set")
    assert result["images"] == 200 and result["wall_s"] < 5


def test_a_run_ends_where_the_store_gives_an_object_no_more(s3, store, made, pictures, tmp_path):
    fill(store, pictures[:60])
    store.fault = lambda number, method, path: "503" if path.endswith(pictures[30].name) else None
    s3.environment["AWS_MAX_ATTEMPTS"] = "2"
    done = s3.run("run", made[0], "s3://bucket/photos", "--batch", 1, "--decode-threads", 1, "--json", tmp_path / "result.json", status=1)
    assert f"{pictures[30].name}: " in done.stderr.decode() and "503 SlowDown (2 tries)" in done.stderr.decode(), done.stderr.decode()
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["interrupted"] and result["rejected"] == 1 and 30 <= result["images"] < 59
    store.fault = None
    assert s3.json("run", made[0], "s3://bucket/photos")["images"] == 60


def test_feed_and_identities_read_a_store(weir, s3, store, made, tmp_path):
    store.put_folder("bucket", "sets/one/", made[1])
    remote = s3.json("feed", "s3://bucket/sets/one", "--bench", "--epochs", 1, "--hash", "--width", 32, "--height", 32)
    local = weir.json("feed", made[1], "--bench", "--epochs", 1, "--hash", "--width", 32, "--height", 32)
    assert remote["samples"] == local["samples"] and remote["epoch_hashes"] == local["epoch_hashes"]
    weir.run("identities", "build", tmp_path / "people", "--make", 500, "--dimension", 32)
    store.put_folder("bucket", "people/", tmp_path / "people")
    facts = s3.json("identities", "list", "s3://bucket/people")
    assert facts["index"] == weir.json("identities", "list", tmp_path / "people")["index"]
    (tmp_path / "one.jsonl").write_text(json.dumps({"name": "one", "embedding": [1.0] * 32}) + "\n")
    said = s3.run("identities", "enrol", "s3://bucket/people", tmp_path / "one.jsonl", status=2).stderr.decode()
    assert "only read" in said


def page(keys, more="", size=3, etag="&quot;e&quot;"):
    text = "".join(f"<Contents><Key>{key}</Key><ETag>{etag}</ETag><Size>{size}</Size></Contents>" for key in keys)
    cut = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{more}</NextContinuationToken>" if more else ""
    return f"<ListBucketResult><EncodingType>url</EncodingType>{cut}{text}</ListBucketResult>".encode()


COUNTER = itertools.count()
# Listings that no store gives, and a word of what the program says to each.
HOSTILE = {
    "shorter than the prefix": (lambda _: page(["p"]), b"does not begin with"),
    "beside the prefix": (lambda _: page(["other/a.jpg"]), b"does not begin with"),
    "empty key": (lambda _: page([""]), b"does not begin with"),
    "NUL": (lambda _: page(["photos/a%00b.jpg"]), b"which is none"),
    "size below 0": (lambda _: page(["photos/a.jpg"], size=-1), b"which is none"),
    "size beyond numbers": (lambda _: page(["photos/a.jpg"], size=2**63 - 1), b"which is none"),
    "ETag of two lines": (lambda _: page(["photos/a.jpg"], etag="e&#13;&#10;x-amz-acl: public-read"), b"which is none"),
    "same token": (lambda _: page([f"photos/{next(COUNTER)}.jpg"], more="again"), b"no end"),
    "same page": (lambda _: page(["photos/a.jpg"], more=f"t{next(COUNTER)}"), b"no end"),
    "empty pages": (lambda _: page([], more=f"t{next(COUNTER)}"), b"no end"),
    "leaves": (lambda _: b"<ListBucketResult>" + b"<a/>" * 3_000_000 + b"</ListBucketResult>", b"too many elements"),
    "more leaves": (lambda _: b"<ListBucketResult>" + b"<a/>" * 10_000_000 + b"</ListBucketResult>", b"more bytes than were expected"),
    "long names": (lambda _: b"<ListBucketResult><" + b"a" * 1_000_000 + b">" + b"<b/>" * 100_000, b"too long"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_listing_is_named_and_takes_no_memory(s3, store, recipe, made, tmp_path, name):
    store.listing, said = HOSTILE[name]
    people = tmp_path / "people.npy"
    commands = [("prepare", "s3://bucket/photos", "--recipe", recipe, "-o", tmp_path / "set"), ("run", made[0], "s3://bucket/photos"), ("feed", "s3://bucket/photos", "--bench"),
                ("identities", "search", "s3://bucket/photos", people), ("prepare", "--verify", "s3://bucket/photos")]
    for command in commands if name == "shorter than the prefix" else commands[:1]:
        limited = ["prlimit", "--as=3000000000", PROGRAM, *map(str, command)]
        done = subprocess.run(limited, env=s3.environment, capture_output=True, timeout=120)
        assert done.returncode in (1, 2) and b"s3://bucket/photos" in done.stderr and said in done.stderr, (command, done.returncode, done.stderr[-2000:])
        assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 800_000, command


def test_no_listing_or_etag_becomes_a_header(s3, store, tmp_path, pictures, recipe):
    """What an answer's ETag holds goes into the next request's If-Match: never a line of its own."""
    store.put("bucket", "photos/a.jpg", pictures[0].read_bytes())
    store.extra_headers = {"ETag": '"e"\x0bx'}
    done = s3.run("prepare", "s3://bucket/photos/a.jpg", "--recipe", recipe, "-o", tmp_path / "set", status=None)
    assert done.returncode != 0 and b"ETag" in done.stderr, done.stderr


def test_a_length_that_is_a_lie_costs_no_memory(s3, store, tmp_path):
    """A set.json whose range says that the whole is petabytes, or does not say how long it is."""
    store.put("bucket", "set/set.json", b"x" * (8 << 20))
    for total in (str(2**62), "*", str(2**63 - 1)):
        store.fault = lambda number, method, path, total=total: f"total:{total}" if "set.json" in path else None
        done = s3.run("feed", "s3://bucket/set", "--bench", status=None)
        assert done.returncode in (1, 2) and (b"limit" in done.stderr or b"how long" in done.stderr or b"set.json" in done.stderr), done.stderr
