"""weir study: every trial accounted for, also after kill -9, and nothing that was launched outlives what launched it."""
import collections
import contextlib
import csv
import html.parser
import json
import math
import os
import pathlib
import signal
import statistics
import subprocess
import time
import xml.etree.ElementTree

import pytest

from conftest import MEASURED, PROGRAM

STUDY = """
study: small
model: {model}
data: {data}
factors:
  architecture: [in-process, microservice, distributed]
  batch: [1, 8]
fixed: {{engine: "emulated:base=0ms,per_item=0.5ms", in_flight: 4, mode: async}}
network: {{rate_gbit_per_s: 5}}
repeats: {repeats}
trial: {{images: {images}}}
seed: 7
"""


# Short, so that it is killed twice and played to its end in a few seconds.
KILLED = """
study: killed
model: {model}
data: {data}
factors: {{protocol: [http, grpc]}}
fixed: {{architecture: ARCHITECTURE, engine: "emulated:base=0ms,per_item=0.5ms", in_flight: 4, mode: async, batch: 8}}
network: {{rate_gbit_per_s: 5}}
repeats: {repeats}
trial: {{images: {images}}}
"""


ONE = """
study: one
model: {model}
data: {data}
fixed: {{engine: "emulated:base=0ms,per_item=0ms", batch: 1, in_flight: 4}}
repeats: {repeats}
trial: {{images: {images}}}
"""


def marked(owner):
    """The processes that process `owner` has started."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"WEIR_OWNER={owner}-".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass
    return found


def links(owner):
    listed = json.loads(subprocess.run(["ip", "-j", "link"], capture_output=True, check=True).stdout)
    return [link["ifname"] for link in listed if link["ifname"].startswith(f"weir{owner:x}.")]


def containers(owner):
    try:
        listed = subprocess.run(["podman", "ps", "--all", f"--filter=name=weir-{owner}-", "--format={{.Names}}"], capture_output=True, text=True)
    except FileNotFoundError:
        return []
    return listed.stdout.split()


def gone(check, seconds=30):
    until = time.monotonic() + seconds
    while check():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def write(folder, made, repeats=2, images=60, text=STUDY):
    path = folder / "study.yaml"
    path.write_text(text.format(model=made[0], data=made[1], repeats=repeats, images=images))
    return path


def journal(folder):
    """The tries of trials, without the first line, which says what is studied."""
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()[1:]]


class Page(html.parser.HTMLParser):
    """A report as a browser sees it: its tables, its drawings, and whether it closes what it opens."""
    VOID = {"meta", "br", "hr", "img", "link", "input"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.faults, self.tables, self.links = [], [], [], []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self.open]
        self.drawings = [xml.etree.ElementTree.fromstring("<svg" + part.split("</svg>")[0] + "</svg>") for part in text.split("<script>")[0].split("<svg")[1:]]

    def handle_starttag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("href", "src", "srcset", "action", "data", "poster") and not value.startswith("data:text/csv")]
        if tag in self.VOID:
            return
        self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("href", "src")]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data

    def table(self, *columns):
        """The rows, by their first cells, of the table that has these columns."""
        found = [table for table in self.tables if set(columns) <= set(table[0])]
        assert len(found) == 1, [table[0] for table in self.tables]
        return {row[0]: dict(zip(found[0][0], row)) for row in found[0][1:]}


@pytest.fixture(scope="module")
def played(weir, made, container_image, tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    result = weir.json("study", "--no-replay", write(folder, made), "-o", folder / "out", "--image", container_image.name)
    return result, folder / "out"


@pytest.fixture(scope="module")
def here(played):
    """Why an architecture is not here, or None."""
    why = {}
    for entry in journal(played[1]):
        verdict = entry["record"]["verdict"]
        why.setdefault(entry["record"]["factors"]["architecture"], verdict.get("message") if verdict["verdict"] == "skipped" else None)
    return why


def test_every_configuration_is_played_or_says_why_not(played, here):
    result, folder = played
    assert len(result["configurations"]) == 2 + 2 + 2
    assert here["in-process"] is None
    assert here["microservice"] is None or "no container of" in here["microservice"]
    assert here["distributed"] is None or "a network " in here["distributed"]
    for one in result["configurations"]:
        trials = one["trials"]
        assert trials["failed"] == 0, one
        if here[one["factors"]["architecture"]]:
            continue
        assert trials["valid"] + trials["suspect"] == 2, one
        assert one["metrics"]["throughput_images_per_s"]["n"] == 2
        assert one["metrics"]["resources.app_cpu.mean"]["mean"] > 0
        assert one["metrics"]["resources.gpu_percent.mean"]["mean"] > 1
        if one["factors"]["architecture"] != "in-process":
            assert one["metrics"]["resources.recogniser_cpu.mean"]["mean"] > 0
    differ = [entry["record"]["metrics"].get("answers_differ") for entry in journal(folder) if entry["record"]["verdict"]["verdict"] in ("VALID", "SUSPECT")]
    assert differ and set(differ) == {0}


def test_a_block_holds_every_configuration_once_and_the_reference_three_times(played):
    result, folder = played
    blocks = collections.defaultdict(list)
    for entry in journal(folder):
        blocks[entry["block"]].append(entry)
    assert len(blocks) == 2
    for trials in blocks.values():
        assert sorted(trial["configuration"] for trial in trials if trial["role"] == "trial") == list(range(6))
        assert [trial["role"] for trial in sorted(trials, key=lambda t: t["position"]) if trial["role"] != "trial"] == \
            ["reference-start", "reference-middle", "reference-end"]


def test_the_report_says_what_the_rows_say(played):
    result, folder = played
    for name in ("report.html", "report.md", "report.json", "results.csv", "summary.csv", "study.yaml", "provenance.json"):
        assert (folder / name).stat().st_size > 0, name
    rows = list(csv.DictReader((folder / "results.csv").open(newline="")))
    assert len(rows) == 2 * (6 + 3)
    summary = {row["label"]: row for row in csv.DictReader((folder / "summary.csv").open(newline=""))}
    by_label = collections.defaultdict(dict)
    for row in rows:
        if row["role"] == "trial" and row["verdict"] in ("VALID", "SUSPECT"):
            by_label[row["label"]][row["block"]] = float(row["throughput_images_per_s"])
    reference = by_label[result["configurations"][result["reference"]]["label"]]

    def t(probability):  # of Student's distribution with one degree of freedom, which is Cauchy's
        return math.tan(math.pi * (probability - 0.5))

    def says(row, prefix, **wanted):
        for name, value in wanted.items():
            assert float(row[prefix + name]) == pytest.approx(value, rel=1e-9, abs=1e-9), (row["label"], prefix + name)

    for label, blocks in by_label.items():
        values, row = list(blocks.values()), summary[label]
        assert len(values) == 2
        mean, deviation = statistics.fmean(values), statistics.stdev(values)
        error = deviation / 2 ** 0.5
        says(row, "", n=2, mean=mean, standard_deviation=deviation, standard_error=error, low=mean - t(0.975) * error,
             high=mean + t(0.975) * error, median=statistics.median(values))
        says(row, "throughput_images_per_s:", n=2, mean=mean, standard_error=error)
        if blocks is reference:
            continue
        logs = [math.log(value / reference[block]) for block, value in blocks.items()]
        middle, error = statistics.fmean(logs), statistics.stdev(logs) / 2 ** 0.5
        says(row, "reference_", ratio=math.exp(middle), low=math.exp(middle - t(0.975) * error), high=math.exp(middle + t(0.975) * error),
             smallest_difference=math.expm1((t(0.975) + t(0.8)) * error))
    html = (folder / "report.html").read_text()
    assert "<script src" not in html and "default-src 'none'" in html
    html = html.split("<script>")[0]
    assert "http://" not in html.replace("http://www.w3.org", "").replace("http://127", "").replace("http://198", "")


def test_the_report_is_written_again_alone_and_beside_another(weir, played):
    result, folder = played
    (folder / "report.html").unlink()
    assert weir.json("report", folder)["configurations"] == result["configurations"]
    assert (folder / "report.html").exists()
    assert "compared" in weir.json("report", folder, folder)
    assert b"holds no study" in weir.run("report", folder.parent / "none", status=2).stderr


def test_a_finished_study_is_not_begun_again_but_resumed_without_a_trial(weir, made, container_image, played):
    _, folder = played
    before = (folder / "journal.jsonl").read_bytes()
    study = folder.parent / "study.yaml"
    assert b"--resume" in weir.run("study", "--no-replay", study, "-o", folder, "--image", container_image.name, status=2).stderr
    weir.run("study", "--no-replay", study, "-o", folder, "--image", container_image.name, "--resume", status=MEASURED)
    assert (folder / "journal.jsonl").read_bytes() == before
    study.write_text(study.read_text().replace("in_flight: 4", "in_flight: 5"))
    assert b"in_flight" in weir.run("study", "--no-replay", study, "-o", folder, "--image", container_image.name, "--resume", status=2).stderr
    study.write_text(study.read_text().replace("in_flight: 5", "in_flight: 4"))


def test_a_dry_run_shows_the_trials_and_the_time_and_keeps_nothing(weir, made, container_image, tmp_path):
    result = weir.json("study", "--no-replay", write(tmp_path, made, images=20), "--dry-run", "--image", container_image.name)
    assert len(result["configurations"]) == 6 and result["needed_s"] > 0
    assert sorted(os.listdir(tmp_path)) == ["study.yaml"]


def test_faults_of_the_file_are_named_with_their_line(weir, made, tmp_path):
    path = write(tmp_path, made, text=STUDY.replace("distributed]", "distribted]"))
    error = weir.run("study", "--no-replay", path, "-o", tmp_path / "out", status=2).stderr
    assert b"line 6" in error and b"distributed" in error and not (tmp_path / "out").exists()


@pytest.mark.parametrize("launched, architecture", [(containers, "microservice"), (marked, "distributed")])
def test_a_study_that_is_killed_leaves_nothing_and_goes_on(weir, made, container_image, tmp_path, launched, architecture):
    study = write(tmp_path, made, repeats=1, images=200, text=KILLED.replace("ARCHITECTURE", architecture))
    out = tmp_path / "out"
    command = ["study", "--no-replay", study, "-o", out, "--image", container_image.name]
    for attempt in range(2):
        running = subprocess.Popen([PROGRAM, *map(str, command), *(["--resume"] if attempt else [])], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            assert gone(lambda: not (launched(running.pid) and (out / "journal.jsonl").exists()) and running.poll() is None, 120), "it launched nothing"
            if why := [entry["record"]["verdict"].get("message") for entry in journal(out) if entry["record"]["verdict"]["verdict"] == "skipped"]:
                pytest.skip(why[0])
            time.sleep(0.3 * (attempt + 1))
            assert running.poll() is None, "it ended before it was killed"
        finally:
            running.send_signal(signal.SIGKILL)
            running.wait()
        if not gone(lambda: containers(running.pid), 10):  # killed while podman was making one: the next start finds it
            weir.run("study", "--no-replay", "/no-such-study", status=None)
        assert gone(lambda: marked(running.pid)), f"left running: {marked(running.pid)}"
        assert gone(lambda: links(running.pid)), f"left behind: {links(running.pid)}"
    result = weir.json(*command, "--resume")
    assert not containers(running.pid)
    ids = [entry["id"] for entry in journal(out) if entry["attempt"] == 1]
    assert len(ids) == len(set(ids)) == len(result["configurations"]) + 3 == 5
    assert all(one["trials"]["valid"] + one["trials"]["suspect"] == 1 for one in result["configurations"]), result["configurations"]


def test_a_study_that_was_killed_before_its_first_trial_goes_on(weir, made, tmp_path):
    study = write(tmp_path, made, repeats=1, images=40, text=ONE)
    out = tmp_path / "out"
    weir.run("study", "--no-replay", study, "-o", out, status=MEASURED)
    first_line = (out / "journal.jsonl").read_text().splitlines()[0] + "\n"
    for left in (first_line, first_line[:100], ""):  # killed behind the line, within it, before it
        for name in ("study.yaml", "provenance.json", "report.html"):
            (out / name).unlink()
        (out / "journal.jsonl").write_text(left)
        result = weir.json("study", "--no-replay", study, "-o", out, "--resume")
        assert result["trials"]["planned"] == len(journal(out)) == 4
        assert (out / "study.yaml").read_text() == study.read_text()
        assert json.loads((out / "provenance.json").read_text())["materials"]["pictures"] == 200


def test_a_study_whose_file_is_gone_is_not_played_on(weir, made, tmp_path):
    study = write(tmp_path, made, repeats=1, images=40, text=ONE)
    out = tmp_path / "out"
    weir.run("study", "--no-replay", study, "-o", out, status=MEASURED)
    (out / "study.yaml").unlink()
    lines = (out / "journal.jsonl").read_text().splitlines(keepends=True)
    (out / "journal.jsonl").write_text("".join(lines[:-1]))
    for command in (["study", "--no-replay", study, "-o", out, "--resume"], ["report", out]):
        error = weir.run(*command, status=2).stderr.decode()
        assert f"but not the study file: put it back there, as {out}/study.yaml" in error, error
    assert len(journal(out)) == len(lines) - 2
    (out / "study.yaml").write_text(study.read_text())
    weir.run("study", "--no-replay", study, "-o", out, "--resume", status=MEASURED)
    assert len(journal(out)) == len(lines) - 1


def test_an_interrupt_lets_the_trial_under_way_end_and_keeps_it(made, weir, tmp_path):
    study = write(tmp_path, made, repeats=2, images=40, text=ONE.replace("per_item=0ms", "per_item=3ms"))
    out = tmp_path / "out"
    running = subprocess.Popen([PROGRAM, "study", "--no-replay", str(study), "-o", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert gone(lambda: not ((out / "journal.jsonl").exists() and journal(out)) and running.poll() is None, 120), "it played nothing"
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 130 and "--resume continues" in said
    kept = journal(out)
    assert 1 <= len(kept) < 8 and {entry["record"]["verdict"]["verdict"] for entry in kept} <= {"VALID", "SUSPECT"}, kept
    assert (out / "report.html").exists() and not marked(running.pid)
    weir.run("study", "--no-replay", study, "-o", out, "--resume", status=MEASURED)
    assert journal(out)[: len(kept)] == kept and len(journal(out)) == 8


def test_a_metric_that_no_trial_has_is_told_at_once_and_in_the_report(weir, made, tmp_path):
    text = ONE + "objective: {{metric: thoughput_images_per_s}}\n"
    done = weir.run("study", "--no-replay", write(tmp_path, made, repeats=1, images=40, text=text), "-o", tmp_path / "out", status=1)
    assert b"did you mean throughput_images_per_s?" in done.stderr
    report = (tmp_path / "out/report.html").read_text()
    assert "no trial has the metric that decides" in report and "throughput_images_per_s is near it" in report


def number(text):
    return float(text.replace(",", ""))


def value_at(ticks, place):
    """What an axis with these ticks (place, number) says of a place."""
    (low_place, low), (high_place, high) = min(ticks), max(ticks)
    return low + (place - low_place) / (high_place - low_place) * (high - low)


def drawn(drawing):
    """The numbers that a chart shows, read off its own axis: [(value, low, high)], without the last two where no error bar is drawn."""
    at = {name: [{key: float(value) if key in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height") else value
                  for key, value in element.attrib.items()} | {"text": element.text} for element in drawing.iter("{http://www.w3.org/2000/svg}" + name)]
          for name in ("text", "line", "circle", "rect")}
    at["circle"] = [circle for circle in at["circle"] if circle.get("class") != "dot"]
    points = []
    if at["circle"]:  # values upwards
        ticks = [(text["y"] - 4, number(text["text"])) for text in at["text"] if text.get("text-anchor") == "end"]
        for circle in at["circle"]:
            bar = [line for line in at["line"] if line["x1"] == line["x2"] == circle["cx"] and line.get("stroke") == circle["fill"]
                   and line["y2"] <= circle["cy"] <= line["y1"]]
            points.append([value_at(ticks, circle["cy"])] + [value_at(ticks, bar[0][end]) for end in ("y1", "y2") if bar])
    else:  # values to the right
        below = max(text["y"] for text in at["text"] if text.get("text-anchor") == "middle" and text.get("class") != "label")
        ticks = [(text["x"], number(text["text"])) for text in at["text"] if text.get("text-anchor") == "middle" and text["y"] == below]
        for rect in at["rect"]:
            bar = [line for line in at["line"] if line.get("class") == "error" and line["y1"] == line["y2"] == rect["y"] + rect["height"] / 2]
            points.append([value_at(ticks, rect["x"] + rect["width"])] + [value_at(ticks, bar[0][end]) for end in ("x1", "x2") if bar])
    return points, max(tick for _, tick in ticks)


def test_the_page_is_whole_and_its_charts_show_the_numbers_of_the_json(played):
    result, folder = played
    page = Page((folder / "report.html").read_text())
    assert not page.faults and not page.links
    assert len(result["figures"]) == 2
    keys = ("figures", "latency_figures", "memory_figures", "stability_figures")
    assert len(page.drawings) == sum(len(result[key]) for key in keys)
    for drawing, figure in zip(page.drawings, result["figures"]):
        labels = [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text") if text.get("class") == "label"]
        assert "throughput (images/s)" in labels
        assert ("batch (pictures)" in labels) == (figure["kind"] == "lines")
        shown, highest = drawn(drawing)
        points = [point for series in figure["series"] for point in series["points"]]
        assert len(shown) == len(points) > 0
        for seen, point in zip(shown, points):
            wanted = [max(0, point[key]) for key in ("mean", "low", "high") if key in point]
            assert seen == pytest.approx(wanted, abs=highest / 1000), (figure["title"], point)  # a tenth of a pixel of 300 or more
    table = page.table("configuration", "bottleneck", "mean")
    for one in result["configurations"]:
        row = table.get(one["label"]) or table[one["label"] + " (reference)"]
        mean = one["metrics"].get("throughput_images_per_s", {}).get("mean")
        assert row["mean"] == "-" if mean is None else number(row["mean"].split()[0]) == pytest.approx(mean, rel=1e-3)


@contextlib.contextmanager
def slow_disk(path, bytes_per_s):
    """Lets what joins it read no faster from the disk that `path` is on: gives what a child calls first, or why there is no such limit here. The
    kernel's block layer holds it back, so its readers wait as they do for a slow disk."""
    device = path.stat().st_dev
    number_of = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not number_of.exists():
        yield f"{path} is on no disk"
        return
    disk = (number_of / "../dev" if (number_of / "partition").exists() else number_of / "dev").read_text().strip()
    blkio = pathlib.Path("/sys/fs/cgroup/blkio")  # of the first version; the second has all in one tree
    group = (blkio if blkio.is_dir() else blkio.parent) / f"weir-slow-disk-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        yield f"no control group can be made here: {error}"
        return
    gives = lambda: (group / "cgroup.procs").write_text("0")
    try:
        if blkio.is_dir():
            (group / "blkio.throttle.read_bps_device").write_text(f"{disk} {bytes_per_s}")
        else:
            (group / "io.max").write_text(f"{disk} rbps={bytes_per_s}")
    except OSError as error:
        gives = f"this machine limits no disk: {error}"
    try:
        yield gives
    finally:
        gone(lambda: (group / "cgroup.procs").read_text())
        group.rmdir()


WALLS = """
study: bottlenecks
model: {model}
data: {data}
design: star
base: {{architecture: in-process, mode: async, batch: 8, in_flight: 4, accelerator: "emulated:base=0ms,per_item=0ms",
       decode_threads: 1, data_path: files, images: 40, page_cache: warm}}
factors: {{page_cache: [warm, cold]}}
also:
  - {{accelerator: "emulated:base=30ms,per_item=0ms", batch: 1, decode_threads: 2}}
  - {{accelerator: "emulated:base=30ms,per_item=0ms,streams=8", batch: 1, in_flight: 1, decode_threads: 2}}
repeats: {repeats}
trial: {{images: {images}}}
"""


def walls_of(folder, study, join=None):
    """The rows of the report's table, each with its configuration of the JSON."""
    done = subprocess.run([PROGRAM, "study", "--no-replay", str(study), "-o", str(folder / "out")], preexec_fn=join, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    result = json.loads((folder / "out/report.json").read_text())
    table = Page((folder / "out/report.html").read_text()).table("configuration", "bottleneck", "mean")
    return [(one, table.get(one["label"]) or table[one["label"] + " (reference)"]) for one in result["configurations"]]


@pytest.fixture(scope="module")
def bottlenecks(weir, made, tmp_path_factory):
    """Of a study on a slow disk; and why there is none, where there is none."""
    folder = tmp_path_factory.mktemp("bottlenecks")
    with slow_disk(folder, 1_000_000) as join:
        rows = walls_of(folder, write(folder, made, repeats=1, images=34, text=WALLS), join if callable(join) else None)
    return rows, None if callable(join) else join


@pytest.mark.parametrize("bottleneck, factors", [
    ("decode", {"decode_threads": 1, "page_cache": "warm"}),
    ("read", {"page_cache": "cold"}),
    ("infer", {"accelerator": "emulated:base=30ms,per_item=0ms"}),
    ("in_flight", {"in_flight": 1}),
], ids=["one decode thread", "slow disk", "slow engine", "depth 1"])
def test_a_planted_bottleneck_is_named_in_the_report(bottlenecks, bottleneck, factors):
    rows, no_slow_disk = bottlenecks
    found = [(one, row) for one, row in rows if all(one["factors"].get(name) == level for name, level in factors.items())]
    assert len(found) == 1, factors
    one, row = found[0]
    if bottleneck == "read" and no_slow_disk:
        pytest.skip(no_slow_disk)
    assert row["bottleneck"] == bottleneck, one["words"]


# Seconds for a trial: on a link of its own a connection needs a while to find its rate.
LINK_WALL = """
study: link
model: {model}
data: {data}
factors: {{network: [1]}}
fixed: {{architecture: distributed, protocol: http, mode: async, batch: 64, in_flight: 4, load: closed,
        accelerator: "emulated:base=0ms,per_item=0ms"}}
repeats: {repeats}
trial: {{images: {images}}}
"""


def test_a_slow_link_is_named_in_the_report(weir, made, tmp_path):
    (one, row), = walls_of(tmp_path, write(tmp_path, made, repeats=1, images=6000, text=LINK_WALL))
    if "skipped_why" in one:
        pytest.skip(one["skipped_why"])
    if row["bottleneck"] == "cpu":
        pytest.skip("others take all cores of this machine: nobody can fill a link of 1 Gbit/s")
    assert row["bottleneck"] == "network", (one["words"], one["metrics"]["throughput_images_per_s"])
