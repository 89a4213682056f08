#!/usr/bin/env python3
"""Compares weir identities with faiss, USearch and hnswlib on planted mates at equal recall.

    bench/identities.py --rows 200000 --cosine 0.4 --intrinsic 16 [--peers ivf-rabitq,hnsw-sq8,usearch-i8,hnswlib]

It makes a virtual environment with the peers on its first run (--venv). With --work the vectors and the peers' indexes are kept and
used again, so that another --cosine, --threads or a stopped run does not pay for them twice.

Vectors lie on a manifold of --intrinsic dimensions (random Fourier features; 0: isotropic). A mate has the given cosine with its
row and is otherwise isotropic. Recall is the share of the mates an exact search ranks first that a look-up ranks first as well.
Each peer's search effort rises until its recall reaches --recall; then all take turns, so that a busy machine slows all of them.
One query at a time, --threads threads each.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

PEERS = ["faiss-cpu==1.15.1", "usearch==2.26.6", "hnswlib==0.8.0", "numpy"]

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rows", type=int, default=200_000)
parser.add_argument("--dimension", type=int, default=512)
parser.add_argument("--intrinsic", type=int, default=16)
parser.add_argument("--cosine", type=float, default=0.4)
parser.add_argument("--queries", type=int, default=500)
parser.add_argument("--recall", type=float, default=0.99)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--peers", default="ivf-rabitq,hnsw-sq8,usearch-i8,hnswlib")
parser.add_argument("--weir", default=str(pathlib.Path(__file__).resolve().parent.parent / "build/release/weir"))
parser.add_argument("--work", help="folder for vectors and index (default: a temporary one)")
parser.add_argument("--venv", default=os.path.expanduser("~/.cache/weir-bench/identities"), help="virtual environment with the peers")
options = parser.parse_args()
if any(importlib.util.find_spec(name) is None for name in ("numpy", "faiss", "usearch", "hnswlib")):
    python = pathlib.Path(options.venv, "bin/python")
    if pathlib.Path(sys.prefix).resolve() == pathlib.Path(options.venv).resolve():
        sys.exit(f"{options.venv} lacks a peer: remove it and run again")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", options.venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PEERS], check=True)
    os.execv(python, [str(python), *sys.argv])
import numpy

os.environ["OMP_NUM_THREADS"] = str(os.cpu_count())
d, n = options.dimension, options.rows
chance = numpy.random.default_rng(1)
weights = chance.standard_normal((max(options.intrinsic, 1), d), dtype="f4") * (3 / max(options.intrinsic, 1)) ** 0.5
phases = chance.uniform(0, 2 * numpy.pi, d).astype("f4")


def made(count):
    if options.intrinsic == 0:
        x = chance.standard_normal((count, d), dtype="f4")
    else:
        x = numpy.cos(chance.standard_normal((count, options.intrinsic), dtype="f4") @ weights + phases)
    return x / numpy.linalg.norm(x, axis=1, keepdims=True)


work = pathlib.Path(options.work or tempfile.mkdtemp(prefix="weir-identities-"))
work.mkdir(exist_ok=True)
kept = f"{n}-{d}-{options.intrinsic}"
if not (work / f"{kept}.npy").exists():
    rows = numpy.lib.format.open_memmap(work / "part.npy", "w+", "<f4", (n, d))
    for begin in range(0, n, 50_000):
        rows[begin:begin + 50_000] = made(min(50_000, n - begin))
    rows.flush()
    (work / "part.npy").rename(work / f"{kept}.npy")
rows = numpy.load(work / f"{kept}.npy", mmap_mode="r")
chance = numpy.random.default_rng(2)
truth = chance.choice(n, options.queries, replace=False)
noise = chance.standard_normal((options.queries, d), dtype="f4")
noise -= (noise * rows[truth]).sum(1, keepdims=True) * rows[truth]
noise /= numpy.linalg.norm(noise, axis=1, keepdims=True)
queries = numpy.ascontiguousarray(options.cosine * rows[truth] + (1 - options.cosine ** 2) ** 0.5 * noise, dtype="f4")
best = numpy.full(options.queries, -2, "f4")
exact = numpy.zeros(options.queries, int)
for begin in range(0, n, 50_000):
    scores = queries @ rows[begin:begin + 50_000].T
    at = scores.argmax(1)
    top = scores[numpy.arange(options.queries), at]
    exact = numpy.where(top > best, begin + at, exact)
    best = numpy.maximum(best, top)
findable = exact == truth
with open(work / "mates.jsonl", "w", encoding="utf-8") as out:
    for name, query in zip(truth, queries):
        out.write(json.dumps({"name": str(name), "embedding": query.tolist()}) + "\n")


def recall_of(found):
    return float((found == truth)[findable].mean())


def weir(*arguments):
    done = subprocess.run([options.weir, "identities", *map(str, arguments), "--json", "-"], capture_output=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.decode())
    return json.loads(done.stdout)


class Peer:
    def __init__(self, name, bytes_a_row, efforts, search, build_s):
        self.name, self.bytes_a_row, self.efforts, self.search, self.build_s = name, bytes_a_row, efforts, search, build_s
        self.times = []

    def tune(self):
        for self.effort in self.efforts:
            self.recall = recall_of(self.round())
            if self.recall >= options.recall:
                break
        self.times = []

    def round(self):
        found = []
        for query in queries:
            begin = time.perf_counter()
            found.append(self.search(query[None], self.effort))
            self.times.append(time.perf_counter() - begin)
        return numpy.array(found)


def keep(name, make, write, read):
    """(index, bytes a row, seconds of its build): made, or read where an earlier run kept it."""
    path, seconds = work / f"{kept}.{name}", work / f"{kept}.{name}.s"
    if not seconds.exists():
        begin = time.perf_counter()
        index = make()
        built = time.perf_counter() - begin
        write(index, str(path))
        seconds.write_text(str(built))
        print(f"{name}: built in {built:.0f} s", file=sys.stderr, flush=True)
    else:
        index = read(str(path))
    return index, path.stat().st_size / n, float(seconds.read_text())


def faiss_peer(name, factory, efforts, set_effort):
    import faiss
    faiss.omp_set_num_threads(os.cpu_count())

    def make():
        index = faiss.index_factory(d, factory, faiss.METRIC_INNER_PRODUCT)
        index.train(rows[:min(n, 100_000)])
        for at in range(0, n, 50_000):
            index.add(rows[at:at + 50_000])
        return index
    index, size, built = keep(factory.split(",")[-2 if "," in factory else 0], make, faiss.write_index, faiss.read_index)

    def search(query, effort):
        faiss.omp_set_num_threads(options.threads)
        set_effort(faiss, index, effort)
        return int(index.search(query, 1)[1][0, 0])
    return Peer(name, size, efforts, search, built)


def ivf_rabitq():
    lists = int(2 ** round(numpy.log2(2 * n ** 0.5)))
    efforts = [(p, k) for p in (lists // 64, lists // 16, lists // 8, lists // 4, lists // 2, lists) for k in (64, 512)]

    def effort(faiss, index, e):
        faiss.ParameterSpace().set_index_parameter(index, "nprobe", max(e[0], 1))
        faiss.ParameterSpace().set_index_parameter(index, "k_factor_rf", e[1])
    return faiss_peer("faiss IVF-RaBitQ, refined by SQ8", f"RR{d},IVF{lists},RaBitQ,Refine(SQ8)", efforts, effort)


def hnsw_sq8():
    def effort(faiss, index, e):
        faiss.ParameterSpace().set_index_parameter(index, "efSearch", e)
    return faiss_peer("faiss HNSW32-SQ8", "HNSW32_SQ8", [32, 128, 512, 1024, 2048, 4096, 8192], effort)


def usearch_i8():
    from usearch.index import Index

    def make():
        index = Index(ndim=d, metric="cos", dtype="i8", connectivity=16)
        for at in range(0, n, 50_000):
            index.add(numpy.arange(at, min(at + 50_000, n)), rows[at:at + 50_000], threads=os.cpu_count())
        return index
    index, size, built = keep("usearch", make, lambda index, path: index.save(path), lambda path: Index.restore(path))

    def search(query, effort):
        index.expansion_search = effort
        return int(index.search(query[0], 1, threads=options.threads).keys[0])
    return Peer("USearch i8", size, [32, 128, 512, 1024, 2048, 4096, 8192], search, built)


def hnswlib_f32():
    import hnswlib

    def make():
        index = hnswlib.Index("ip", d)
        index.init_index(n, M=16, ef_construction=100)
        for at in range(0, n, 50_000):
            index.add_items(rows[at:at + 50_000], numpy.arange(at, min(at + 50_000, n)), num_threads=os.cpu_count())
        return index

    def read(path):
        index = hnswlib.Index("ip", d)
        index.load_index(path)
        return index
    index, size, built = keep("hnswlib", make, lambda index, path: index.save_index(path), read)

    def search(query, effort):
        index.set_ef(effort)
        return int(index.knn_query(query, 1, num_threads=options.threads)[0][0, 0])
    return Peer("hnswlib f32", size, [32, 128, 512, 1024, 2048, 4096, 8192], search, built)


place = work / f"{kept}-{options.cosine}.weir"
if not place.with_suffix(".s").exists():
    shutil.rmtree(place, ignore_errors=True)
    begin = time.perf_counter()
    weir("build", place, "--vectors", work / f"{kept}.npy", "--mate-cosine", options.cosine)
    place.with_suffix(".s").write_text(str(time.perf_counter() - begin))
build_s = float(place.with_suffix(".s").read_text())
makers = {"ivf-rabitq": ivf_rabitq, "hnsw-sq8": hnsw_sq8, "usearch-i8": usearch_i8, "hnswlib": hnswlib_f32}
peers = [makers[name]() for name in options.peers.split(",") if name]
for peer in peers:
    peer.tune()
# The recall, once. The exact search reads all rows, so that they are in memory for the rounds, as the peers' are.
recall = weir("evaluate", place, "--mates", work / "mates.jsonl", "--threshold", 0, "--exact")["recall"]["value"]
ours = []
for _ in range(options.rounds):
    ours.append(weir("evaluate", place, "--mates", work / "mates.jsonl", "--threshold", 0, "--threads", options.threads))
    for peer in peers:
        peer.round()
facts = ours[0]["index"]
print(f"{n} rows, {d} values, intrinsic dimension {options.intrinsic}, mates at {options.cosine}; exact search ranks {findable.mean():.4f} of them first; {options.threads} thread(s)")
print(f"{'':34}{'recall':>8}{'p50 us':>9}{'p99 us':>9}{'bytes a row':>13}{'build s':>9}  effort")
us = [o["search_us"] for o in ours]
print(f"{'weir identities':34}{recall:8.4f}{numpy.median([u['p50'] for u in us]):9.0f}{numpy.median([u.get('p99', u['max']) for u in us]):9.0f}"
      f"{facts['memory_bytes'] / n:13.0f}{build_s:9.1f}  {facts['probes']} of {facts['lists']} lists, {facts['candidates']} rows")
for peer in peers:
    times = numpy.array(peer.times) * 1e6
    print(f"{peer.name:34}{peer.recall:8.4f}{numpy.percentile(times, 50):9.0f}{numpy.percentile(times, 99):9.0f}{peer.bytes_a_row:13.0f}{peer.build_s:9.1f}  {peer.effort}")
