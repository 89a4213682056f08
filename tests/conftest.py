"""Tests through the built program. WEIR_PROGRAM names it; WEIR_SHARED the folder of test data (beside the checkout otherwise)."""
import csv
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from _pytest.runner import runtestprotocol

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("WEIR_PROGRAM", str(ROOT / "build/release/weir"))
SHARED = pathlib.Path(os.environ.get("WEIR_SHARED", ROOT.parent / "shared"))
SANITIZED = any(name in PROGRAM for name in ("asan", "tsan"))


MOST_TRIES = 5  # of a test that is marked `timing`
repeated = {}  # test -> failed tries


def pytest_configure(config):
    config.addinivalue_line("markers", "timing: asserts a duration or a rate, which other processes can disturb; runs alone; repeated when it fails, but not under sanitizers")
    config.addinivalue_line("markers", "long: takes half a minute and more; ./dev soak runs it")
    config.addinivalue_line("markers", "xdist_group(name): tests that one process runs")


@pytest.hookimpl(tryfirst=True)  # before the hook that reads the groups
def pytest_collection_modifyitems(items):
    """Puts tests that share a fixture of their module into one group, which one process runs: it makes the fixture once."""
    for item in items:
        shared = [name for name, definitions in item._fixtureinfo.name2fixturedefs.items()
                  if definitions[-1].scope == "module" and definitions[-1].baseid == item.location[0]]
        if shared:
            item.add_marker(pytest.mark.xdist_group(f"{item.location[0]}:{min(shared)}"))


def _may_repeat(reports):
    """Returns whether only an assertion failed: a crash or a sanitizer's report is never repeated."""
    failed = [str(report.longrepr) for report in reports if report.failed]
    return failed and not any("Sanitizer" in text or "exit -" in text for text in failed)


def pytest_runtest_protocol(item, nextitem):
    if SANITIZED or item.get_closest_marker("timing") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for _ in range(MOST_TRIES):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if not _may_repeat(reports):
            break
        repeated[item.nodeid] = repeated.get(item.nodeid, 0) + 1
        item._initrequest()
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter):
    for test, times in repeated.items():
        terminalreporter.write_line(f"timing: {test} failed {times} of at most {MOST_TRIES} tries")


# A measurement that other programs or the hypervisor disturbed is INVALID and ends with 3; its result is whole all the same.
MEASURED = (0, 3)


class Weir:
    """Runs the program. A fault of the program fails the test with what it said.

    `status` is the one expected, or several; None: any. `json` gives the parsed result; a test that wants a claim to be VALID or a
    target to be met says status=0, and is a timing test, or looks at the result.
    """

    def run(self, *arguments, status=0, timeout=300, **kwargs):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, timeout=timeout, **kwargs)
        said = done.stderr.decode(errors="replace")
        assert "Sanitizer" not in said, said
        if status is not None:
            wanted = status if isinstance(status, tuple) else (status,)
            assert done.returncode in wanted, f"exit {done.returncode}, not {status}\n{said}\n{done.stdout.decode(errors='replace')}"
        return done

    def json(self, *arguments, status=MEASURED, **kwargs):
        return json.loads(self.run(*arguments, "--json", "-", status=status, **kwargs).stdout)


@pytest.fixture(scope="session")
def weir():
    assert os.path.exists(PROGRAM), f"{PROGRAM} is missing: ./dev build"
    return Weir()


@pytest.fixture(scope="session")
def shared():
    if not (SHARED / "data").is_dir():
        pytest.skip(f"the test data is not at {SHARED}: set WEIR_SHARED")
    return SHARED


@pytest.fixture(scope="session")
def made(weir, tmp_path_factory):
    """A made network and fresh made pictures: (model folder, set folder)."""
    folder = tmp_path_factory.mktemp("made")
    weir.run("model", "make", "tiny", "--seed", 1, "-o", folder)
    weir.run("prepare", "--make", 200, "--seed", 2, "-o", folder / "pictures")
    return folder / "tiny", folder / "pictures"


def read_answers(path):
    """file -> list of rows in the order of their ranks."""
    answers = {}
    with open(path, newline="", encoding="utf-8", errors="surrogateescape") as file:
        for row in csv.DictReader(file):
            answers.setdefault(row["file"], []).append(row)
    return answers


@pytest.fixture(scope="session")
def answers_of():
    return read_answers


def podman_fault():
    """Why podman cannot make even an image of one file here (in a chroot it cannot); None where it can."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "Containerfile").write_text("FROM scratch\nCOPY Containerfile /\n")
        tried = subprocess.run(["podman", "build", "--quiet", "--tag", "localhost/weir-probe", folder], capture_output=True, text=True, timeout=120)
        subprocess.run(["podman", "image", "rm", "--force", "localhost/weir-probe"], capture_output=True, check=False)
    return None if tried.returncode == 0 else tried.stderr.strip().splitlines()[-1]


class ContainerImage:
    """The server's image, built from the program under test; `missing` says why there is none."""
    name = "localhost/weir-test"
    missing = None


@pytest.fixture(scope="session")
def container_image():
    image = ContainerImage()
    if SANITIZED:
        image.missing = "an image of a sanitized program is not what is shipped"
    elif shutil.which("podman") is None:
        image.missing = "podman is not here: apt-get install podman runc"
    elif fault := podman_fault():
        image.missing = f"podman makes no image here: {fault}"
    else:
        built = subprocess.run([ROOT / "tools/container.sh", image.name], capture_output=True, text=True, timeout=300,
                               env=os.environ | {"WEIR_PROGRAM": PROGRAM})
        assert built.returncode == 0, built.stderr
    yield image
    if not image.missing:
        subprocess.run(["podman", "image", "rm", "--force", image.name], capture_output=True, check=False)
