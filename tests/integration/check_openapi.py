"""Requests that schemathesis makes from the routes: whatever they are, none is answered as a fault of the server, and it stays up."""
import json
import os
import pathlib
import subprocess
import sys

import openapi
import rig

PROGRAM = pathlib.Path(sys.executable).parent / "schemathesis"


def attack(server, tmp_path, document):
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(document))
    # 501 is what the protocol has and this server has not; 503 says that the client may come again.
    expected = '["2xx", "3xx", "4xx", "501", "503"]'
    (tmp_path / "schemathesis.toml").write_text(f"[checks]\nnot_a_server_error.expected-statuses = {expected}\n")
    examples = os.environ.get("WEIR_SCHEMATHESIS_EXAMPLES", "15")
    command = [PROGRAM, "run", path, "--url", f"http://{server.http}", "--checks", "not_a_server_error", "--max-examples", examples, "--seed", "1",
               "--phases", "examples,coverage,fuzzing", "--generation-database", "none"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, cwd=tmp_path)
    assert server.process.poll() is None, server.said()
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert rig.Client("http", server).triton.is_server_ready()


def test_no_request_is_a_fault_of_the_server(repository, tmp_path):
    running = rig.Server(tmp_path, "--model-repository", repository, "--allow-client-shm", "--model-control-mode", "explicit", "--load-model", "*")
    try:
        attack(running, tmp_path, openapi.document(["simple", "simple_string", "identity_bytes", "identity_fp32"]))
    finally:
        running.stop()
