"""Real studies whose truth is known by construction: a delay that is planted in one stage, and a factor that does nothing."""
import struct
import zlib

import pytest

from test_schemas import check

# One request at a time, so the times of the steps add up. A batch takes the accelerator 1 ms.
STUDY = """
study: planted
model: slow
data: {data}
factors: {{batch: [1]}}
fixed: {{architecture: distributed, protocol: http, mode: sync, data_path: files, network: {gbit_per_s}, server_batching: {{max_batch: 8, delay_us: {queue_us}}}}}
waterfall: true
repeats: 1
trial: {{images: 31}}
"""
CONFIG = """backend: "emulated"
max_batch_size: 8
input [ { name: "input" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]
output [ { name: "logits" data_type: TYPE_FP32 dims: [ 1000 ] } ]
parameters { key: "engine" value: { string_value: "emulated:base=1ms" } }
"""
RECIPE = """input: "input"
layout: NCHW
datatype: FP32
channels: RGB
resize: {short_side: 256, filter: bilinear}
crop: {width: 224, height: 224}
scale: 0.00392156862745098
output: "logits"
"""
# A picture's wait for others; the way of its 602,112 bytes, less the 70,000 that a link lets pass at once; the least time of a large picture.
QUEUE_MS, NETWORK_MS, DECODE_MS = 150, 60, 20
GBIT_PER_S = (602_112 - 70_000) * 8 / (NETWORK_MS * 1e6)


def write_png(path, side):
    """A black picture of side x side: small as a file, slow to decode."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\0" + bytes(3 * side)) * side
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def steps_of(weir, folder, side, **planted):
    """Milliseconds that each step adds to a picture of side x side."""
    (folder / "slow").mkdir(parents=True)
    (folder / "slow/config.pbtxt").write_text(CONFIG)
    (folder / "slow/recipe.yaml").write_text(RECIPE)
    (folder / "pictures").mkdir()
    for number in range(4):
        write_png(folder / f"pictures/{number}.png", side)
    (folder / "planted.yaml").write_text(STUDY.format(data=folder / "pictures", **planted))
    result = weir.json("study", folder / "planted.yaml", "-o", folder / "out", "--no-replay", status=None)
    check(result, "study")
    if skipped := [one["skipped_why"] for one in result["configurations"] if "skipped_why" in one]:
        pytest.skip(skipped[0])
    assert not result["waterfall"]["missing"], result["waterfall"]
    return {one["name"]: one["mean_ms"] for one in result["waterfall"]["steps"]}


@pytest.mark.long
@pytest.mark.timing
def test_a_planted_delay_moves_its_step_and_no_other(weir, tmp_path):
    before = steps_of(weir, tmp_path / "plain", 256, gbit_per_s=5, queue_us=100)
    after = steps_of(weir, tmp_path / "planted", 3000, gbit_per_s=GBIT_PER_S, queue_us=100 + 1000 * QUEUE_MS)
    moved = {name: after[name] - before[name] for name in before}
    # The sizes differ, so a delay in another's step would be seen. A busy machine moves all steps a little.
    assert moved.pop("network") == pytest.approx(NETWORK_MS, abs=30), moved
    assert moved.pop("batching") == pytest.approx(QUEUE_MS, abs=30), moved
    assert moved.pop("decode") > DECODE_MS, moved
    assert set(moved) >= {"files", "inter-process calls", "another node"}
    assert max(map(abs, moved.values())) < 25, moved


# The two accelerators are one, written twice.
NOTHING = """
study: nothing
model: {model}
data: {data}
factors: {{accelerator: ["emulated:base=2ms", "emulated:base=2ms,per_item=0ms"]}}
fixed: {{architecture: in-process, mode: sync, batch: 8, data_path: memory}}
repeats: 6
trial: {{images: 400}}
"""


@pytest.mark.timing
def test_a_factor_that_does_nothing_shows_no_difference(weir, made, tmp_path):
    (tmp_path / "nothing.yaml").write_text(NOTHING.format(model=made[0], data=made[1]))
    result = weir.json("study", tmp_path / "nothing.yaml", "-o", tmp_path / "out", "--no-replay", status=None)
    [effect] = result["effects"]
    assert effect["told"] == "no difference shown" and effect["limit"] > 0, effect
    assert effect["low"] <= 1 <= effect["high"], effect
    rates = [one for one in result["comparisons"] if one["metric"] == "throughput_images_per_s"]
    assert [one["told"] for one in rates] == ["no difference shown"]
