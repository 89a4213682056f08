"""kserve's own clients."""
import pathlib
import subprocess
import sys


def test_every_datatype_comes_back(server):
    script = pathlib.Path(__file__).parent / "kserve_client.py"
    done = subprocess.run([sys.executable, script, server.http, server.grpc], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.split()[:1] == ["passed"] and int(done.stdout.split()[1]) >= 36
