"""Limits that are planted in one part, or in two: the gain that is printed holds when the first limit is taken away for real."""
import pytest

from test_schemas import check
from test_study_truth import CONFIG, RECIPE, write_png

BASE = {"architecture": "distributed", "protocol": "http", "mode": "async", "batch": 4, "in_flight": 8, "data_path": "memory",
        "accelerator": '"emulated:base=0ms,per_item=0.05ms"', "network": "unshaped", "load": "application"}


def engine(ms, streams=1):
    """An accelerator that takes so many milliseconds for a picture."""
    return f'"emulated:base=0ms,per_item={ms}ms,streams={streams}"'


def play(weir, folder, factor, planted, gone, side=256, images=160, **fixed):
    """The bottleneck with the limit planted, the rate there, and that without it."""
    (folder / "slow").mkdir()
    (folder / "slow/config.pbtxt").write_text(CONFIG)
    (folder / "slow/recipe.yaml").write_text(RECIPE)
    (folder / "pictures").mkdir()
    for number in range(8):
        write_png(folder / f"pictures/{number}.png", side)
    levels = {key: level for key, level in (BASE | fixed).items() if key != factor}
    if levels["architecture"] == "in-process":
        levels = {key: level for key, level in levels.items() if key not in ("network", "protocol")}
    (folder / "planted.yaml").write_text(
        f"study: planted\nmodel: slow\ndata: {folder}/pictures\nfactors: {{{factor}: [{planted}, {gone}]}}\n"
        f"fixed: {{{', '.join(f'{key}: {level}' for key, level in levels.items())}}}\nrepeats: 2\ntrial: {{images: {images}}}\n")
    result = weir.json("study", folder / "planted.yaml", "-o", folder / "out", "--no-replay", status=None)
    check(result, "study")
    if skipped := [one["skipped_why"] for one in result["configurations"] if "skipped_why" in one]:
        pytest.skip(skipped[0])
    rates = [one["metrics"]["throughput_images_per_s"]["mean"] for one in result["configurations"]]
    return result["configurations"][0]["bottleneck"], *rates


CASES = {
    "a link": ("network", "network", 0.2, "unshaped", {}),
    "a link before a load generator": ("network", "network", 0.2, "unshaped", {"load": "closed"}),
    "a link, then an engine": ("network", "network", 0.2, "unshaped", {"accelerator": engine(5)}),
    "a link, then an engine, before a load generator": ("network", "network", 0.2, "unshaped", {"accelerator": engine(5), "load": "closed"}),
    "an engine, then a link": ("infer", "accelerator", engine(40), engine(0.05), {"network": 0.5, "images": 100}),
    "an engine in one process": ("infer", "accelerator", engine(20), engine(0.05), {"architecture": "in-process"}),
    "the depth": ("in_flight", "in_flight", 1, 8, {"accelerator": '"emulated:base=40ms,streams=4"'}),
    "the depth in one process, then an engine": ("in_flight", "in_flight", 1, 8, {"accelerator": '"emulated:base=40ms,streams=2"', "architecture": "in-process"}),
    "decoding": ("decode", "data_path", "files", "memory", {"architecture": "in-process", "side": 2500, "images": 60, "accelerator": engine(2)}),
}


@pytest.mark.timing
@pytest.mark.parametrize("case", CASES)
def test_the_gain_holds_when_the_limit_is_taken_away(weir, tmp_path, case):
    stage, factor, planted, gone, fixed = CASES[case]
    bottleneck, before, after = play(weir, tmp_path, factor, planted, gone, **fixed)
    assert bottleneck["stage"] == stage, bottleneck
    assert "contradiction" not in bottleneck, bottleneck
    real = after / before
    assert real <= 1.1 * bottleneck["gain"]["high"], (bottleneck, real)
    assert bottleneck["gain"]["low"] > 1.2, bottleneck
