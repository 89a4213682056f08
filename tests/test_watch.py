"""weir watch: every frame has one fate, latency counts from the burnt-in capture time, faults stay with their stream."""
import base64
import contextlib
import hashlib
import http.server
import io
import json
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import conftest
import pytest
from rtsp_camera import rtsp_camera
from test_report_page import BROWSER
from test_schemas import check
from test_serve import Server

ENGINE = ("--engine", "emulated:base=5ms,per_item=0ms")


def watch(weir, model, *arguments, status=0, deadline="300ms", **kwargs):
    result = weir.json("watch", *arguments, "--classify", model, *ENGINE, "--deadline", deadline, status=status, **kwargs)
    for frames in [result["frames"]] + [stream["frames"] for stream in result["per_stream"]]:
        assert frames["captured"] == frames["answered"] + sum(frames["dropped"].values()), frames
    return result


def faults(stream):
    return {fault["kind"]: fault["count"] for fault in stream["faults"]}


def test_every_frame_of_a_made_stream_is_accounted_for(weir, made, tmp_path):
    lines, events = tmp_path / "frames.jsonl", tmp_path / "events.jsonl"
    result = watch(weir, made[0], "made:fps=20,frames=30,size=320x240", "made:fps=20,frames=30,size=320x240,seed=2", "--frames", lines, "--events", events)
    assert result["streams"] == 2 and result["frames"]["captured"] == 60
    assert [stream["produced"] for stream in result["per_stream"]] == [30, 30]
    assert result["per_stream"][0]["capture_source"] == {"burnt-in-code": result["per_stream"][0]["frames"]["answered"]}
    records = [json.loads(line) for line in lines.read_text().splitlines()]
    assert len(records) == 60 and sum(r["fate"] == "answered" for r in records) == result["frames"]["answered"]
    assert len(events.read_text().splitlines()) == result["frames"]["answered"]
    assert (events.stat().st_mode & 0o777) == 0o600
    answered = [r for r in records if r["fate"] == "answered"]
    for record in answered:
        assert sum(record["stages_ms"].values()) == pytest.approx(record["latency_ms"], abs=1e-3)


def test_a_planted_delay_is_found_in_the_latency_and_named(weir, made):
    result = watch(weir, made[0], "made:fps=10,frames=15,size=320x240,delay=100ms", deadline="90ms")
    assert result["frames"]["in_time"] == 0 and result["frames"]["dropped"].get("late", 0) + result["frames"]["dropped"].get("expired", 0) == 15
    result = watch(weir, made[0], "made:fps=10,frames=20,size=320x240,delay=100ms", deadline="2s")
    assert result["frames"]["answered"] == 20
    assert result["stages_ms"]["transport"]["min"] >= 100
    assert result["latency_ms"]["min"] >= 105
    assert result["stages_ms"]["transport"]["p50"] < 130


def test_lost_frames_are_counted_by_the_streams_own_counter(weir, made):
    result = watch(weir, made[0], "made:fps=40,frames=120,size=320x240,loss=0.2,seed=5", deadline="2s", )
    stream = result["per_stream"][0]
    lost = stream["frames"]["dropped"]["lost"]
    assert 5 <= lost <= 50
    assert stream["produced"] - 5 <= stream["frames"]["captured"] <= stream["produced"]  # frames lost at the very end leave no gap


def test_frames_out_of_order_and_repeated_have_their_own_causes(weir, made):
    result = watch(weir, made[0], "made:fps=20,frames=60,size=320x240,reorder=0.2,seed=3", "made:fps=20,frames=40,size=320x240,freeze=500ms+500ms",
                   "--drop", "none", deadline="2s")
    first, second = (stream["frames"]["dropped"] for stream in result["per_stream"])
    assert first["out-of-order"] > 3 and first.get("lost", 0) <= 1
    assert second["repeated"] == 10


def test_a_clock_step_and_a_change_of_size_are_faults_of_their_stream_alone(weir, made):
    result = watch(weir, made[0], "made:fps=20,frames=40,size=320x240,step=1s+-500ms", "made:fps=20,frames=40,size=640x480,resize=1s+320x240",
                   "made:fps=20,frames=40,size=320x240,seed=4", deadline="2s")
    step, size, good = result["per_stream"]
    assert faults(step) == {"clock-step": 1} and "-500" in step["faults"][0]["message"]
    assert faults(size) == {"size-change": 1} and size["frames"]["answered"] >= 38
    assert good["faults"] == []


def test_damaged_frames_cost_only_themselves(weir, made):
    result = watch(weir, made[0], "made:fps=20,frames=60,size=320x240,damage=0.3", deadline="2s")
    stream = result["per_stream"][0]
    assert stream["frames"]["dropped"]["undecodable"] == faults(stream)["damaged"]
    assert stream["frames"]["dropped"]["undecodable"] > 5 and stream["frames"]["answered"] > 20


def test_a_cut_and_a_stall_are_followed_by_a_new_connection(weir, made):
    result = watch(weir, made[0], "made:fps=20,frames=60,size=320x240,cut=1s", "made:fps=20,frames=80,size=320x240,stall=1s+1500ms",
                   "--stall-timeout", "700ms", deadline="2s")
    cut, stall = result["per_stream"]
    assert cut["connects"] == 2 and faults(cut) == {"disconnected": 1}
    assert stall["connects"] >= 2 and faults(stall)["stalled"] >= 1 and stall["frames"]["dropped"]["lost"] >= 25
    for stream in (cut, stall):
        assert stream["frames"]["captured"] == stream["produced"]


def test_overload_drops_frames_and_keeps_the_latency_bounded(weir, made):
    slow = ("--engine", "emulated:base=50ms,per_item=0ms", "--batch", "1")
    result = weir.json("watch", "made:fps=40,frames=120,size=320x240", "--classify", made[0], *slow, "--deadline", "400ms")
    frames = result["frames"]
    assert frames["captured"] == 120 == frames["answered"] + sum(frames["dropped"].values())
    assert frames["dropped"]["superseded"] > 30
    assert frames["answered"] >= 40  # of the 60 that the engine computes in these three seconds
    assert result["latency_ms"]["max"] < 800
    assert result["bottleneck"]["stage"] == "infer", result["bottleneck"]


@pytest.mark.timing
def test_find_max_finds_the_engines_limit_and_confirms_it(weir, made):
    # 60 ms a frame, one at a time, at 5 frames/s: three streams take 0.9 of the engine.
    result = weir.json("watch", "made:fps=5,size=320x240", "--classify", made[0], "--engine", "emulated:base=60ms,per_item=0ms", "--batch", "1",
                       "--deadline", "400ms", "--find-max", "--trial", "2s", "--most-streams", "8")
    found = result["find_max"]
    assert 2 <= found["streams"] <= 3, found
    assert found["confirmations"] == 5 and not found["limited_by_most"]
    assert found["bottleneck"]["stage"] == "infer"


def test_an_interrupted_watch_keeps_its_account(made, tmp_path):
    out, lines = tmp_path / "r.json", tmp_path / "frames.jsonl"
    child = subprocess.Popen([conftest.PROGRAM, "watch", "made:fps=20,size=320x240", "--classify", made[0], *ENGINE, "--json", out, "--frames", lines],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while (not lines.exists() or lines.stat().st_size == 0) and time.monotonic() < until:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == 130
    result = json.loads(out.read_text())
    assert result["interrupted"] and result["frames"]["captured"] == result["frames"]["answered"] + sum(result["frames"]["dropped"].values()) > 0


def test_a_kill_leaves_whole_lines(made, tmp_path):
    lines = tmp_path / "frames.jsonl"
    child = subprocess.Popen([conftest.PROGRAM, "watch", "made:fps=50,size=320x240", "--classify", made[0], *ENGINE, "--frames", lines],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while (not lines.exists() or lines.stat().st_size < 4000) and time.monotonic() < until:
        time.sleep(0.02)
    child.kill()
    child.wait(timeout=60)
    text = lines.read_text()
    assert text.endswith("\n")
    sequences = [json.loads(line)["sequence"] for line in text.splitlines()]
    assert sorted(sequences) == list(range(len(sequences)))


@pytest.mark.parametrize("arguments,words", [
    (("made:fps=0",), b"fps"),
    (("ftp://x",), b"ftp"),
    (("made:", "--deadline", "soon"), b"--deadline"),
    (("made:", "--embed", "x"), b"--embed"),
])
def test_wrong_usage_is_named(weir, made, arguments, words):
    assert words in weir.run("watch", *arguments, "--classify", made[0], status=2).stderr


# ---- MJPEG over HTTP: a small camera of our own.

def jpeg(counter, captured_us, stream=1, size=(320, 240)):
    """A picture with the code of src/watch/frame_code.h, written anew from its description."""
    Image = pytest.importorskip("PIL.Image")
    bits = f"{0xC5A:012b}{stream:016b}{counter:032b}{captured_us:052b}"
    crc = 0xFFFF
    for bit in bits:
        top = (crc >> 15 & 1) ^ int(bit)
        crc = (crc << 1 ^ (0x1021 if top else 0)) & 0xFFFF
    bits += f"{crc:016b}"
    cell = size[0] // 40
    picture = Image.new("RGB", size, (90, 120, 150))
    for i, bit in enumerate(bits):
        x, y = i % 32 * cell, i // 32 * cell
        picture.paste((235, 235, 235) if bit == "1" else (16, 16, 16), (x, y, x + cell, y + cell))
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


@contextlib.contextmanager
def camera(serve):
    """A server on loopback whose connections `serve(socket, number)` handles, one thread each."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads = []

    def accept():
        number = 0
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                thread = threading.Thread(target=handle, args=(connection, number), daemon=True)
                thread.start()
                threads.append(thread)
                number += 1

    def handle(connection, number):
        with connection, contextlib.suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(4096)
            serve(connection, number, request)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n"


def frames(connection, first, count, fps=20, length=True):
    for i in range(first, first + count):
        body = jpeg(i, int(time.time() * 1e6))
        head = f"--frame\r\nContent-Type: image/jpeg\r\n" + (f"Content-Length: {len(body)}\r\n" if length else "") + "\r\n"
        connection.sendall(head.encode() + body + b"\r\n")
        time.sleep(1 / fps)


def test_mjpeg_over_http_with_and_without_lengths(weir, made):
    def serve(connection, number, request):
        connection.sendall(HEAD)
        frames(connection, 0, 20, length=b"/with" in request)
        connection.sendall(b"--frame--\r\n")

    with camera(serve) as address:
        result = watch(weir, made[0], f"http://{address}/with", f"http://{address}/without", deadline="2s")
    for stream in result["per_stream"]:
        assert stream["frames"]["captured"] == 20 and stream["capture_source"] == {"burnt-in-code": stream["frames"]["answered"]}
        assert stream["faults"] == [] and stream["connects"] == 1


def digest(request, user, password):
    """Whether the request answers the challenge below, by RFC 7616."""
    given = dict(re.findall(r'(\w+)="?([^",\r]*)"?', re.search(r"Authorization: Digest (.*)", request.decode()).group(1)))

    def md5(text):
        return hashlib.md5(text.encode()).hexdigest()

    first, second = md5(f"{user}:camera:{password}"), md5("GET:" + given["uri"])
    return given["response"] == md5(f"{first}:n0nce:{given['nc']}:{given['cnonce']}:auth:{second}") and given["uri"] == request.split()[1].decode()


def test_mjpeg_from_cameras_that_follow_no_rule(weir, made):
    challenge = b'HTTP/1.1 401 Unauthorized\nWWW-Authenticate: Digest realm="camera", nonce="n0nce", qop="auth"\n\n'

    def serve(connection, number, request):
        if b"GET /moved" in request:
            connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /digest?x=1\r\n\r\n")
            return
        if b"GET /digest" in request:
            if b"Authorization" not in request:
                connection.sendall(challenge)
                return
            assert digest(request, "us:er", "p/w@1"), request
        head = HEAD if b"/bare" not in request else HEAD.replace(b"\r\n", b"\n")
        off = 500 if b"/long" in request else -300 if b"/short" in request else 0
        connection.sendall(head.replace(b"boundary=frame", b"boundary=other") if b"/other" in request else head)
        for i in range(20):
            body = jpeg(i, int(time.time() * 1e6))
            part = b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % (len(body) + off) + body + b"\r\n"
            connection.sendall(part if b"/bare" not in request else part[:part.index(body)].replace(b"\r\n", b"\n") + body + b"\n")
            time.sleep(0.05)
        connection.sendall(b"--frame--\r\n")

    paths = ["long", "short", "bare", "other", "moved", "digest"]
    with camera(serve) as address:
        result = watch(weir, made[0], *(f"http://{'us%3Aer:p%2Fw@1@' if path in ('moved', 'digest') else ''}{address}/{path}" for path in paths), deadline="2s")
    for path, stream in zip(paths, result["per_stream"]):
        assert stream["frames"]["answered"] == stream["frames"]["captured"] == 20, (path, stream)
        assert faults(stream) == ({"wrong-length": 20} if path in ("long", "short") else {}), (path, stream)
        assert "p/w" not in stream["name"] and "%2F" not in stream["name"]


def test_a_stream_that_is_refused_for_good_ends_at_once(weir, made):
    def serve(connection, number, request):
        challenge = b'WWW-Authenticate: Digest realm="camera", nonce="n", qop="auth"\r\n'
        connection.sendall(b"HTTP/1.1 401 No\r\n" + challenge + b"\r\n" if b"/401" in request else b"HTTP/1.1 404 No\r\n\r\n")

    with camera(serve) as address:
        begin = time.monotonic()
        done = weir.run("watch", f"http://u:secret@{address}/401", f"http://{address}/404", "--classify", made[0], *ENGINE, status=2)
        assert time.monotonic() - begin < 4
    assert b"the user or the password is wrong" in done.stderr and b"%40" in done.stderr and b"secret" not in done.stderr


def test_all_addresses_of_a_name_are_tried(weir, made):
    names = [each for each in socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM) if each[0] == socket.AF_INET6]
    if not names:
        pytest.skip("localhost has no ::1 here")

    def serve(connection, number, request):
        connection.sendall(HEAD)
        frames(connection, 0, 5)
        connection.sendall(b"--frame--\r\n")

    with camera(serve) as address:
        result = watch(weir, made[0], f"http://localhost:{address.split(':')[1]}/x", deadline="2s")
    assert result["frames"]["answered"] == 5 and result["per_stream"][0]["faults"] == []


def test_bad_streams_report_only_their_own_faults(weir, made):
    def serve(connection, number, request):
        if b"/401" in request:
            connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        elif b"/silent" in request:
            time.sleep(8)
        elif b"/half" in request:
            connection.sendall(HEAD + b"--frame\r\nContent-Length: 50000\r\n\r\nabc")
            time.sleep(8)
        elif b"/page" in request:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>")
        elif b"/huge" in request:
            body = bytearray(jpeg(0, 10**15))
            at = body.index(b"\xff\xc0")
            body[at + 5:at + 9] = b"\x40\x00\x40\x00"  # 16384x16384
            connection.sendall(HEAD + f"--frame\r\nContent-Length: {len(body)}\r\n\r\n".encode() + bytes(body) + b"\r\n")
            time.sleep(8)
        elif b"/again" in request:
            connection.sendall(HEAD)
            frames(connection, number * 10, 10)
        else:
            if b"Authorization" not in request:
                connection.sendall(b'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="camera"\r\n\r\n')
                return
            assert base64.b64encode(b"user:word") in request
            connection.sendall(HEAD)
            frames(connection, 0, 60)
            connection.sendall(b"--frame--\r\n")

    with camera(serve) as address, camera(serve) as again:
        names = ["401", "silent", "half", "page", "huge"]
        result = watch(weir, made[0], f"http://user:word@{address}/good", f"http://{again}/again", *(f"http://{address}/{name}" for name in names),
                       "--duration", "4s", "--stall-timeout", "1s", deadline="2s")
    good, again, *bad = result["per_stream"]
    assert good["faults"] == [] and good["frames"]["answered"] >= 50
    assert "word" not in good["name"]
    assert again["connects"] >= 2 and set(faults(again)) == {"disconnected"}
    kinds = [set(faults(stream)) for stream in bad]
    assert kinds == [{"refused"}, {"stalled"}, {"stalled"}, {"refused"}, {"stalled", "too-large"}], kinds
    assert "401" in bad[0]["faults"][0]["message"]


def test_a_stream_that_cannot_be_reached_is_an_error(weir, made):
    done = weir.run("watch", "http://127.0.0.1:9/x", "--classify", made[0], *ENGINE, "--duration", "1s", status=1)
    assert b"connect-failed" in done.stderr


# ---- Files and RTSP: libav, opened by the program at run time.

@pytest.fixture(scope="module")
def detector(shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("detector")
    (folder / "fastestdet.onnx").symlink_to(shared / "data/streams/fastestdet.onnx")
    (folder / "fastestdet.recipe.yaml").write_text("channels: BGR\nresize: {width: 352, height: 352}\nscale: 0.00392156862745098\n")
    (folder / "face.onnx").symlink_to(shared / "data/streams/yunet_n_320_320.onnx")
    (folder / "face.recipe.yaml").write_text("channels: BGR\noutput: cls_8\nresize: {width: 320, height: 320}\n")
    return folder


def libav(weir, video, model):
    done = weir.run("watch", video, "--classify", model, *ENGINE, "--duration", "1s", status=None)
    if b"libav" in done.stderr:
        pytest.skip(done.stderr.decode().strip().splitlines()[-1])


def test_a_file_plays_at_its_own_pace_and_persons_are_tracked(weir, made, shared, detector, tmp_path):
    video = shared / "data/streams/one-by-one-person-detection.mp4"
    libav(weir, video, made[0])
    events = tmp_path / "events.jsonl"
    result = weir.json("watch", video, "--detect", detector / "fastestdet.onnx", "--detect-class", 0, "--deadline", "5s", "--duration", "12s", "--events", events)
    stream = result["per_stream"][0]
    assert 95 <= stream["frames"]["captured"] <= 125  # 10 frames/s
    assert stream["capture_source"] == {"file-timestamp": stream["frames"]["answered"]}
    # A frame that others are made of is read 400 ms before it is shown: it does not count as captured then.
    assert result["stages_ms"]["wait"]["p90"] < 300
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    seen = [line for line in lines if line["objects"]]
    assert len(seen) > 10, "persons walk through the picture"
    assert 1 <= stream["tracks"] <= 10
    for line in seen:
        for found in line["objects"]:
            assert found["class"] == 0 and found["score"] >= 0.6 and len(found["box"]) == 4
    result = weir.json("watch", video, "--detect", detector / "face.onnx", "--deadline", "5s", "--duration", "2s")
    assert result["frames"]["answered"] > 5


def test_a_file_that_is_no_video_is_an_error(weir, made, shared, tmp_path):
    libav(weir, shared / "data/streams/one-by-one-person-detection.mp4", made[0])
    (tmp_path / "x.mp4").write_bytes(b"no video" * 1000)
    for path, words in ((tmp_path / "x.mp4", b"no video"), (tmp_path / "none.mp4", b"No such file"), (tmp_path, b"regular file")):
        begin = time.monotonic()
        done = weir.run("watch", "made:fps=5", path, "--classify", made[0], *ENGINE, status=2)
        assert str(path).encode() in done.stderr and words in done.stderr
        assert time.monotonic() - begin < 2


class Eye(http.server.BaseHTTPRequestHandler):
    """A served model that keeps the pictures it is asked about: FP32 [1,3,48,64]."""
    protocol_version = "HTTP/1.1"

    def reply(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.endswith("/config"):
            return self.reply({"name": "eye", "max_batch_size": 0})
        if self.path.startswith("/v2/models"):
            return self.reply({"name": "eye", "versions": ["1"], "platform": "x", "inputs": [{"name": "in", "datatype": "FP32", "shape": [1, 3, 48, 64]}],
                               "outputs": [{"name": "out", "datatype": "FP32", "shape": [1, 2]}]})
        return self.reply({"name": "eye", "version": "1", "extensions": ["binary_tensor_data"]})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        at = int(self.headers.get("Inference-Header-Content-Length", 0))
        self.server.seen.append(struct.unpack("<9216f", body[at:at + 36864]) if at else tuple(json.loads(body)["inputs"][0]["data"]))
        self.reply({"model_name": "eye", "model_version": "1", "outputs": [{"name": "out", "datatype": "FP32", "shape": [1, 2], "data": [1, 0]}]})

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def eye():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Eye)
    server.seen = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/eye", server.seen
    finally:
        server.shutdown()
        server.server_close()


RECIPE = "layout: NCHW\nresize: {width: 64, height: 48}\noutput: out\n"


def at(seen, x, y):
    """The colour of a pixel of 64x48."""
    return tuple(seen[channel * 48 * 64 + y * 64 + x] for channel in range(3))


def reference(path, x, y):
    """The same by ffmpeg, which turns pictures and converts colours itself."""
    done = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-frames:v", "1", "-vf", "scale=64:48:flags=area", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                          capture_output=True, check=True, timeout=60)
    offset = (y * 64 + x) * 3
    return tuple(done.stdout[offset:offset + 3])


def look(weir, path, tmp_path, **kwargs):
    (tmp_path / "eye.recipe.yaml").write_text(RECIPE)
    with eye() as (url, seen):
        begin = time.monotonic()
        result = weir.json("watch", path, "--classify", url, "--recipe", tmp_path / "eye.recipe.yaml", "--deadline", "2s", "--drop", "none", **kwargs)
        return result, seen, time.monotonic() - begin


# The corners have colours of their own, so that each turn shows.
SCENE = ("color=c=0xC73A1C:s=320x240:r=10:d=1,drawbox=x=0:y=0:w=80:h=60:c=0x1030E0:t=fill,drawbox=x=240:y=180:w=80:h=60:c=0x20D040:t=fill")
CLIPS = {
    "601.mp4": ["-pix_fmt", "yuv420p"],
    "709.mp4": ["-vf", "scale=out_color_matrix=bt709", "-pix_fmt", "yuv420p", "-colorspace", "bt709"],
    "2020.mkv": ["-vf", "scale=out_color_matrix=bt2020", "-pix_fmt", "yuv420p10le", "-colorspace", "bt2020nc", "-c:v", "libx265", "-x265-params", "log-level=none"],
    "422.mp4": ["-vf", "scale=out_color_matrix=bt709", "-pix_fmt", "yuv422p", "-colorspace", "bt709"],
    "444.mp4": ["-vf", "scale=out_color_matrix=bt709", "-pix_fmt", "yuv444p", "-colorspace", "bt709"],
    "full.mp4": ["-vf", "scale=out_color_matrix=bt709:out_range=full", "-pix_fmt", "yuv420p", "-colorspace", "bt709", "-color_range", "pc"],
    "full10.mp4": ["-vf", "scale=out_range=full", "-pix_fmt", "yuv420p10le", "-color_range", "pc"],
    "rgb.mkv": ["-c:v", "ffv1", "-pix_fmt", "gbrp"],
    "mjpeg.avi": ["-c:v", "mjpeg", "-q:v", "2", "-pix_fmt", "yuvj422p"],
    "vp8.webm": ["-c:v", "libvpx", "-auto-alt-ref", "1", "-lag-in-frames", "16", "-b:v", "1M"],
    "field.ts": ["-flags", "+ilme+ildct", "-x264opts", "tff=1"],
    "bframes.h264": ["-bf", "3"],
}


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not here")
@pytest.mark.parametrize("name", CLIPS)
def test_a_file_has_the_frames_and_the_colours_that_ffmpeg_has(weir, made, tmp_path, name):
    path = tmp_path / name
    made_clip = subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", SCENE, *CLIPS[name], path], capture_output=True, text=True, check=False, timeout=120)
    if made_clip.returncode != 0:
        pytest.skip(f"this ffmpeg makes no {name}: {made_clip.stderr}")
    count = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0", path],
                           capture_output=True, text=True, check=True, timeout=60)
    libav(weir, path, made[0])
    result, seen, elapsed = look(weir, path, tmp_path)
    frames_there = int(count.stdout.strip().strip(","))
    assert result["frames"]["answered"] == result["frames"]["captured"] == frames_there == len(seen), (result["frames"], count.stdout)
    for x, y in ((5, 5), (32, 24), (60, 44), (60, 3)):
        for mine, right in zip(at(seen[0], x, y), reference(path, x, y)):
            assert abs(mine - right) <= 3, (name, x, y, at(seen[0], x, y), reference(path, x, y))
    assert 0.8 < elapsed < 4, "a second of frames at their pace"


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not here")
@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_turned_file_is_shown_upright(weir, made, tmp_path, turn):
    path, plain = tmp_path / "turned.mp4", tmp_path / "plain.mp4"
    subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", SCENE, "-pix_fmt", "yuv420p", plain], check=True, timeout=60)
    subprocess.run(["ffmpeg", "-v", "error", "-i", plain, "-c", "copy", "-metadata:s:v", f"rotate={turn}", path], check=True, timeout=60)
    libav(weir, path, made[0])
    _, seen, _ = look(weir, path, tmp_path)
    for x, y in ((5, 5), (60, 44), (60, 3), (3, 44)):
        for mine, right in zip(at(seen[0], x, y), reference(path, x, y)):
            assert abs(mine - right) <= 3, (turn, x, y, at(seen[0], x, y), reference(path, x, y))


def test_streams_that_were_found_are_as_ffmpeg_has_them(weir, made, shared, tmp_path):
    folder = shared / "data/found-streams"
    libav(weir, folder / "rot90.mp4", made[0])
    for name, count, seconds in (("cut.mp4", 25, 2.5), ("raw.h264", 30, 3.0), ("gap11.mp4", 3, 22.0), ("rot90.mp4", 20, 2.0), ("c_422_709.mp4", 20, 2.0), ("c_p10_709.mp4", 20, 2.0)):
        result, seen, _ = look(weir, folder / name, tmp_path)
        assert result["frames"]["answered"] == result["frames"]["captured"] == count == len(seen), (name, result["frames"])
        # From the first packet to the last one; the last frame's own time is not waited for.
        assert 0.85 * seconds <= result["wall_s"] <= 1.05 * seconds + 0.3, (name, result["wall_s"])
        if name.startswith("c_"):
            assert all(abs(mine - right) <= 3 for mine, right in zip(at(seen[0], 32, 24), (199, 57, 28))), (name, at(seen[0], 32, 24))
        if shutil.which("ffmpeg"):
            for x, y in ((5, 5), (60, 44)):
                assert all(abs(mine - right) <= 4 for mine, right in zip(at(seen[0], x, y), reference(folder / name, x, y))), (name, x, y)
    done = weir.run("watch", folder / "nomoov.mp4", "--classify", made[0], *ENGINE, status=2)
    assert b"no video" in done.stderr


@pytest.fixture(scope="module")
def video(weir, made, shared):
    path = shared / "data/streams/one-by-one-person-detection.mp4"
    libav(weir, path, made[0])
    return path


def test_rtsp_takes_the_capture_time_from_sender_reports(weir, made, video):
    with rtsp_camera(video, report_delay=0.1) as camera:
        result = watch(weir, made[0], camera.url("good"), camera.url("none"), "--duration", "4s", deadline="3s")
    good, none = result["per_stream"]
    assert good["frames"]["captured"] > 40 and good["connects"] == 1 and good["faults"] == []
    assert good["capture_source"]["rtcp-sender-report"] > 0.8 * good["frames"]["answered"]
    # The reports say that each frame was captured 100 ms before its packets left.
    assert good["latency_ms"]["p50"] >= 100
    assert set(faults(none)) == {"refused"}


def test_bad_rtsp_streams_report_their_own_faults_and_the_others_keep_their_deadline(weir, made, video):
    names = ["401", "silent", "half", "loss", "backwards", "absurd", "huge", "gone"]
    with rtsp_camera(video) as camera:
        result = watch(weir, made[0], "made:fps=20,size=320x240", camera.url("good"), *(camera.url(name) for name in names), "--duration", "6s",
                       "--stall-timeout", "1s", "--connect-timeout", "2s", "--max-pixels", 4096 * 4096, deadline="2s")
    drawn, good, *bad = result["per_stream"]
    streams = dict(zip(names, bad))
    for stream in (drawn, good):
        assert stream["faults"] == [] and stream["frames"]["answered"] >= 60, stream
        assert stream["in_time_percent"] >= 95, stream
    assert "refused" in faults(streams["401"]) and "401" in streams["401"]["faults"][0]["message"]
    assert set(faults(streams["silent"])) <= {"stalled", "connect-timeout", "connect-failed"} and faults(streams["silent"])
    assert set(faults(streams["half"])) <= {"stalled", "connect-timeout", "connect-failed", "damaged"} and faults(streams["half"])
    # Each packet that is missing is counted, and the decoder makes up for what it held.
    assert faults(streams["loss"]).get("packets-lost", 0) > 5 and faults(streams["loss"]).get("damaged", 0) > 0
    assert streams["loss"]["frames"]["answered"] > 20
    for name in ("backwards", "absurd"):
        assert streams[name]["frames"]["answered"] > 40, streams[name]
    # The decoder refuses pictures over the limit: no frame is answered, and each that came is accounted for.
    assert set(faults(streams["huge"])) & {"too-large", "damaged"} and streams["huge"]["frames"]["answered"] == 0
    assert streams["gone"]["connects"] >= 2 and set(faults(streams["gone"])) & {"disconnected", "stalled"}


def test_a_camera_that_changes_its_codec_is_decoded_again_after_the_reconnection(weir, made, video):
    Image = pytest.importorskip("PIL.Image")
    pictures = []
    for level in range(0, 250, 50):
        buffer = io.BytesIO()
        Image.new("RGB", (320, 240), (level, 120, 150)).save(buffer, "JPEG", quality=80, subsampling="4:2:0")
        pictures.append(buffer.getvalue())
    with rtsp_camera(video, jpegs=pictures) as camera:
        result = watch(weir, made[0], camera.url("codec"), camera.url("good"), "--duration", "6s", "--stall-timeout", "2s", deadline="2s")
    changed, good = result["per_stream"]
    assert good["faults"] == [] and good["connects"] == 1
    assert changed["connects"] == 2 and faults(changed)["size-change"] == 1, changed["faults"]
    assert set(faults(changed)) <= {"disconnected", "size-change", "stalled"}, changed["faults"]
    assert changed["frames"]["answered"] > 50  # 20 of the first codec at most


# ---- H.264 that the program makes itself.

H264 = "made:codec=h264,fps=20,size=320x240"


def test_made_h264_has_a_truth_and_its_faults_stay_its_own(weir, made, video, tmp_path):
    lines = tmp_path / "frames.jsonl"
    result = watch(weir, made[0], f"{H264},frames=60", f"{H264},frames=60,bframes=2", f"{H264},frames=80,gop=10,loss=0.05,seed=3", f"{H264},frames=40,freeze=500ms+500ms",
                   f"{H264},frames=60,resize=1s+640x480", f"{H264},frames=80,gop=10,cut=1s", "--drop", "none", "--frames", lines, deadline="3s")
    plain, reordered, lossy, frozen, resized, cut = result["per_stream"]
    for stream in (plain, reordered):
        assert stream["faults"] == [] and stream["frames"] == {"captured": 60, "answered": 60, "in_time": stream["frames"]["in_time"], "dropped": {}}, stream
        assert stream["capture_source"] == {"burnt-in-code": 60} and stream["capture_error_ms"]["max"] < 0.01
    assert lossy["frames"]["dropped"]["lost"] >= 1 and lossy["frames"]["captured"] >= 70
    assert frozen["frames"]["dropped"] == {"repeated": 10}
    assert faults(resized) == {"size-change": 1} and resized["frames"]["answered"] >= 58
    assert cut["connects"] == 2 and "disconnected" in faults(cut) and cut["frames"]["captured"] == cut["produced"]
    for record in map(json.loads, lines.read_text().splitlines()):
        if record["fate"] == "answered" and record["stream"] == f"{H264},frames=60":
            assert record["counter"] == record["sequence"]


def test_frames_that_no_other_needs_are_left_out_when_a_stream_is_behind(weir, made, video):
    stream = f"{H264},frames=60,bframes=2,gop=20,delay=1200ms"
    result = watch(weir, made[0], stream, "--drop", "non-reference", deadline="2s")
    frames = result["per_stream"][0]["frames"]
    # The stream is 1.2 s behind, more than half the deadline: two frames of three go, and the others can still be decoded.
    assert 30 <= frames["dropped"]["non-reference"] <= 40
    assert frames["answered"] >= 15 and "undecodable" not in frames["dropped"] and result["per_stream"][0]["faults"] == []
    assert frames["captured"] == 60
    result = watch(weir, made[0], stream, "--drop", "latest", deadline="2s")
    assert "non-reference" not in result["frames"]["dropped"]


def test_a_stream_that_is_a_deadline_behind_goes_on_at_the_next_key_frame(weir, made, video):
    result = watch(weir, made[0], f"{H264},frames=60,gop=15,delay=1500ms", f"{H264},frames=60,gop=15", "--drop", "to-key-frame", deadline="1s")
    behind, good = (stream["frames"] for stream in result["per_stream"])
    assert behind["dropped"]["to-key-frame"] == 56 and behind["captured"] == 60  # all but the four key frames, which are late
    assert sum(behind["dropped"].get(cause, 0) for cause in ("late", "expired")) == 4
    assert good["dropped"].get("to-key-frame", 0) <= 15 and good["answered"] >= 40


# ---- Events to a web server, and the page.

@contextlib.contextmanager
def web_server(statuses):
    """Answers POSTs with these statuses, then with 200; gives the bodies of each status."""
    bodies = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = statuses[len(bodies)] if len(bodies) < len(statuses) else 200
            bodies.append((status, json.loads(body)))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", bodies
    finally:
        server.shutdown()
        server.server_close()


def test_events_reach_a_webhook_once_each_though_it_fails_at_first(weir, made):
    with web_server([503, 500]) as (url, bodies):
        result = watch(weir, made[0], "made:fps=20,frames=40,size=320x240", "--webhook", url, deadline="2s")
    taken = [event for status, body in bodies if status == 200 for event in body["events"]]
    assert len(taken) == result["frames"]["answered"] == result["webhook"]["posted"]
    assert len({event["sequence"] for event in taken}) == len(taken)
    assert result["webhook"]["retries"] == 2 and result["webhook"]["dropped"] == result["webhook"]["refused"] == 0
    assert result["webhook"]["error"] == "status 500"
    assert "embedding" not in json.dumps(taken)


def test_a_webhook_that_refuses_or_is_away_holds_nothing_up(weir, made):
    with web_server([404] * 1000) as (url, bodies):
        result = watch(weir, made[0], "made:fps=20,frames=20,size=320x240", "--webhook", url, deadline="2s")
    assert result["webhook"]["refused"] == result["frames"]["answered"] == 20 and result["webhook"]["retries"] == 0
    result = watch(weir, made[0], "made:fps=20,frames=20,size=320x240", "--webhook", "http://127.0.0.1:9/", "--webhook-events", "objects", deadline="2s")
    assert result["webhook"]["dropped"] == result["frames"]["answered"] == result["frames"]["in_time"] == 20
    assert b"http://" in weir.run("watch", "made:", "--classify", made[0], "--webhook", "ftp://x", status=2).stderr


@contextlib.contextmanager
def live_page(*arguments):
    child = subprocess.Popen([conftest.PROGRAM, "watch", *map(str, arguments), "--live", "127.0.0.1:0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        url = next(line for line in child.stderr if "live page" in line).split()[-1]
        threading.Thread(target=child.stderr.read, daemon=True).start()
        until = time.monotonic() + 60
        while json.load(urllib.request.urlopen(url + "state.json"))["frames"]["answered"] < 40:
            assert time.monotonic() < until
            time.sleep(0.1)
        yield url
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(timeout=60)


def test_the_live_page_has_state_frames_and_metrics(weir, made):
    with live_page("made:fps=20,size=320x240", "made:fps=20,size=320x240,loss=0.3", "--classify", made[0], *ENGINE, "--deadline", "1s") as url:
        state = json.load(urllib.request.urlopen(url + "state.json"))
        check(state, "watch-live")
        assert [tile["stream"]["name"] for tile in state["tiles"]] == ["made:fps=20,size=320x240", "made:fps=20,size=320x240,loss=0.3"]
        assert state["tiles"][0]["last"]["objects"][0]["class"] >= 0
        answer = urllib.request.urlopen(url + "frame/1.jpg")
        assert answer.headers["Content-Type"] == "image/jpeg" and answer.read().startswith(b"\xff\xd8")
        metrics = urllib.request.urlopen(url + "metrics").read().decode()
        assert re.search(r'^weir_watch_frames_answered_total\{number="0",stream="made:[^"]*"\} [1-9]', metrics, re.M), metrics
        assert re.search(r'^weir_watch_frames_dropped_total\{number="1",.*cause="lost"\} [1-9]', metrics, re.M), metrics
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(url + "frame/7.jpg")
    assert b"--live" in weir.run("watch", "made:", "--classify", made[0], "--live", "here", status=2).stderr


def status_of(url, *headers):
    place = urllib.parse.urlparse(url)
    with socket.create_connection((place.hostname, place.port), timeout=10) as client:
        client.sendall("\r\n".join([f"GET {place.path} HTTP/1.1", *headers, "Connection: close", "", ""]).encode())
        return int(client.recv(4096).split()[1])


def test_the_live_page_is_for_this_machine_and_stays_there(weir, made):
    with live_page("made:fps=20,size=320x240", "--classify", made[0], *ENGINE, "--deadline", "1s") as url:
        for path in ("", "state.json", "metrics", "frame/0.jpg"):
            assert status_of(url + path, "Host: localhost") == 200
            assert status_of(url + path, "Host: evil.example") == 403
            assert status_of(url + path, "Host: localhost", "Origin: http://evil.example") == 403
        half = [socket.create_connection(("127.0.0.1", urllib.parse.urlparse(url).port)) for _ in range(200)]
        for index, client in enumerate(half):
            with contextlib.suppress(OSError):
                client.sendall(b"GET / HT" if index % 2 else b"")
        begin = time.monotonic()
        for _ in range(20):
            assert status_of(url + "metrics", "Host: localhost") == 200
        assert time.monotonic() - begin < 5
        for client in half:
            client.close()


@pytest.mark.skipif(BROWSER is None, reason="apt-get install chromium")
def test_a_browser_draws_a_tile_for_each_stream(weir, made):
    with live_page("made:fps=20,size=320x240", "made:fps=20,size=320x240,loss=0.3", "--classify", made[0], *ENGINE, "--deadline", "1s") as url:
        done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000", "--enable-logging=stderr", "--dump-dom", url],
                              capture_output=True, text=True, timeout=120)
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line], done.stderr[-2000:]
    assert done.stdout.count('class="tile"') == 2
    assert "dropped: lost" in done.stdout and "latency" in done.stdout and 'src="/frame/1.jpg?' in done.stdout


# ---- The distributed architecture.

@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_served_model_answers_as_one_in_this_process(weir, made, tmp_path, scheme):
    (tmp_path / "models").mkdir()
    shutil.copytree(made[0], tmp_path / "models/tiny")
    server = Server(tmp_path, "--model-repository", tmp_path / "models").wait()
    url = server.facts[scheme]["url"]
    bodies = [jpeg(i, 10**15) for i in range(20)]  # the same pixels in both runs, and no capture time that can be true

    def serve(connection, number, request):
        connection.sendall(HEAD)
        for body in bodies:
            connection.sendall(f"--frame\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body + b"\r\n")
            time.sleep(0.05)
        connection.sendall(b"--frame--\r\n")

    answers = []
    with camera(serve) as address:
        for model in (f"{url}/tiny", made[0]):
            events = tmp_path / "events.jsonl"
            result = weir.json("watch", f"http://{address}/", "--deadline", "5s", "--drop", "none", "--classify", model, "--events", events)
            assert result["frames"]["answered"] == 20 and result["per_stream"][0]["capture_source"] == {"arrival": 20}
            if model != made[0]:
                assert url.split("//")[1] in result["engine"]
            lines = sorted(map(json.loads, events.read_text().splitlines()), key=lambda line: line["sequence"])
            answers.append([(line["objects"][0]["class"], round(line["objects"][0]["score"], 3)) for line in lines])
    assert server.stop() == 0
    assert answers[0] == answers[1]


@pytest.fixture(scope="module")
def reid(tmp_path_factory):
    """An emulated embedding model: its output is a function of the input's bytes."""
    folder = tmp_path_factory.mktemp("reid") / "reid"
    folder.mkdir()
    (folder / "config.pbtxt").write_text(
        'backend: "emulated"\nmax_batch_size: 8\n'
        'input { name: "x" data_type: TYPE_FP32 dims: [3, 32, 32] }\noutput { name: "e" data_type: TYPE_FP32 dims: [64] }\n'
        'parameters { key: "engine" value: { string_value: "emulated:base=1ms" } }\n')
    (folder / "recipe.yaml").write_text("resize: {width: 32, height: 32}\n")
    return folder


def test_embeddings_are_looked_up_and_a_slower_storage_is_weighed(weir, made, reid, tmp_path):
    weir.run("identities", "build", tmp_path / "people", "--make", 2000, "--dimension", 64, "--model", reid)
    events = tmp_path / "events.jsonl"
    result = weir.json("watch", "made:fps=20,frames=30,size=320x240", "--embed", reid, "--identities", tmp_path / "people", "--threshold", 0.99,
                       "--storage-delay", "+30ms", "--deadline", "2s", "--events", events)
    assert result["embeddings"] == result["frames"]["answered"] == 30
    delay = result["storage_delay"]
    assert delay["delay_us"] == 30000 and delay["lookups"] == 30
    assert delay["p99_ms"] - delay["p99_without_ms"] == pytest.approx(30, abs=0.2)
    assert "does not matter" in delay["text"]
    assert result["stages_ms"]["identify"]["min"] >= 30
    text = events.read_text()
    assert "embedding" not in text and "similarity" in text
    # An index of another model is refused.
    assert b"model" in weir.run("watch", "made:frames=3", "--embed", made[0], "--identities", tmp_path / "people", "--threshold", 0.9, status=2).stderr


STUDY = """
study: live
model: {model}
factors:
  architecture: [in-process, microservice, distributed]
fixed: {{{fixed} load: {{streams: 2, fps: 10, deadline_ms: 500}}}}
network: {{rate_gbit_per_s: 5}}
repeats: 1
trial: {{seconds: 2}}
objective: {{metric: watch.in_time_percent}}
"""


def play(weir, folder, text):
    folder.mkdir()
    (folder / "live.yaml").write_text(text)
    weir.run("study", "--no-replay", folder / "live.yaml", "-o", folder / "out", status=None)
    lines = [json.loads(line)["record"] for line in (folder / "out/journal.jsonl").read_text().splitlines()[1:]]
    for record in lines:  # each was played, or says why it could not be
        assert record["verdict"]["verdict"] != "failed", record
        assert record["verdict"].get("message") or record["metrics"]["watch"]["answered"] > 0, record
    return {record["factors"]["architecture"]: record for record in lines if "watch" in record["metrics"]}


@pytest.mark.long
def test_a_study_compares_architectures_on_live_streams(weir, made, tmp_path):
    played = play(weir, tmp_path / "own", STUDY.format(model=made[0], fixed='engine: "emulated:base=2ms,per_item=0ms",'))
    metrics = played["in-process"]["metrics"]
    assert metrics["watch"]["captured"] == metrics["watch"]["answered"] + sum(metrics["watch"]["dropped"].values()) >= 30
    assert metrics["response_ms"]["n"] == metrics["watch"]["answered"] and "live streams" in metrics["response_of"]
    (tmp_path / "models").mkdir()
    shutil.copytree(made[0], tmp_path / "models/tiny")
    server = Server(tmp_path, "--model-repository", tmp_path / "models").wait()
    url = server.facts["http"]["url"]
    played = play(weir, tmp_path / "other", STUDY.format(model=made[0], fixed=f'server: {{name: own, url: "{url}", http: "{url}", model: tiny}},'))
    assert server.stop() == 0
    assert played["microservice"]["metrics"]["watch"]["answered"] > 20 and url in played["microservice"]["command"]
