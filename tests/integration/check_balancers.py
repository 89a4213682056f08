"""Balancers of others in front of two servers, started by a study: equal shares by the servers' own counts."""
import json
import os
import shutil
import sys

import pytest

PATH = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}:/usr/sbin"


STUDY = """study: balancers
model: {model}
data: {data}
factors: {{balancer: [{balancer}]}}
fixed: {{architecture: distributed, servers: 2, protocol: {protocol}, engine: "emulated:base=1ms,per_item=0ms", load: closed, in_flight: 4, batch: 1}}
repeats: 1
trial: {{images: 400}}
seed: 3
"""


# Each plays four trials of half a minute in all, so not every pair is here.
@pytest.mark.parametrize("balancer, protocol", [("none", "http"), ("haproxy", "http"), ("nginx", "http"), ("nginx", "grpc"), ("envoy", "grpc"), ("round_robin", "grpc")])
def test_shares_are_within_one_percent(weir, made, tmp_path, balancer, protocol):
    if balancer in ("haproxy", "nginx", "envoy") and shutil.which(balancer, path=PATH) is None:
        pytest.skip(f"{balancer} is not here")
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.format(model=made[0], data=made[1], balancer=balancer, protocol=protocol))
    weir.run("study", "--no-replay", path, "-o", tmp_path / "out", env={**os.environ, "PATH": PATH}, status=None)
    entries = [json.loads(line) for line in (tmp_path / "out/journal.jsonl").read_text().splitlines()[1:]]
    record = next(entry["record"] for entry in entries if entry["role"] == "trial")
    assert "servers" in record["metrics"], record
    servers = record["metrics"]["servers"]
    assert servers["balance"] == balancer and servers["retried"] == 0
    assert len(servers["each"]) == 2 and sum(one["answered"] for one in servers["each"]) >= 400
    assert servers["imbalance"] <= 0.01, servers
