"""A small RTSP camera on loopback: H.264 of an MP4 file over TCP, with sender reports, and with the faults of bad cameras."""
import base64
import contextlib
import socket
import struct
import threading
import time


def boxes(data, begin=0, end=None):
    """The boxes of an MP4 between two offsets: (type, begin of the content, end)."""
    at, end = begin, len(data) if end is None else end
    while at + 8 <= end:
        size, kind = struct.unpack_from(">I4s", data, at)
        head = 8
        if size == 1:
            size, head = struct.unpack_from(">Q", data, at + 8)[0], 16
        yield kind, at + head, at + size
        at += size


def find(data, path, begin=0, end=None):
    for kind, first, last in boxes(data, begin, end):
        if kind == path[0]:
            return (first, last) if len(path) == 1 else find(data, path[1:], first, last)
    raise KeyError(path)


class Video:
    """The parameter sets and the access units (lists of NAL units) of the first track."""

    def __init__(self, path):
        data = path.read_bytes()
        first, last = find(data, [b"moov", b"trak", b"mdia", b"minf", b"stbl"])
        config = data.index(b"avcC", first, last) + 4
        at = config + 6
        length = struct.unpack_from(">H", data, at)[0]
        self.sps = data[at + 2:at + 2 + length]
        at += 2 + length + 1
        length = struct.unpack_from(">H", data, at)[0]
        self.pps = data[at + 2:at + 2 + length]
        table = {kind: data[begin:end] for kind, begin, end in boxes(data, first, last)}
        count = struct.unpack_from(">I", table[b"stsz"], 8)[0]
        sizes = struct.unpack_from(f">{count}I", table[b"stsz"], 12)
        chunks = struct.unpack_from(">I", table[b"stco"], 4)[0]
        offsets = struct.unpack_from(f">{chunks}I", table[b"stco"], 8)
        runs = struct.unpack_from(">I", table[b"stsc"], 4)[0]
        runs = [struct.unpack_from(">III", table[b"stsc"], 8 + 12 * i) for i in range(runs)]
        self.units = []
        for chunk in range(1, chunks + 1):
            at = offsets[chunk - 1]
            for _ in range([run for run in runs if run[0] <= chunk][-1][1]):
                size = sizes[len(self.units)]
                self.units.append(list(self.nals(data[at:at + size])))
                at += size

    @staticmethod
    def nals(sample):
        at = 0
        while at + 4 <= len(sample):
            size = struct.unpack_from(">I", sample, at)[0]
            yield sample[at + 4:at + 4 + size]
            at += 4 + size


def sps_of(width, height):
    """A sequence parameter set of the baseline profile for a picture of this size."""
    bits = ""

    def golomb(value):
        nonlocal bits
        text = f"{value + 1:b}"
        bits += "0" * (len(text) - 1) + text

    for value in (0, 0, 2, 1):  # id, frame numbers, order counts of type 2, one reference
        golomb(value)
    bits += "0"
    golomb(width // 16 - 1)
    golomb(height // 16 - 1)
    bits += "1" + "1" + "0" + "0" + "1"  # frames alone, direct 8x8, no crop, no VUI, stop
    bits += "0" * (-len(bits) % 8)
    return b"\x67\x42\x00\x33" + int(bits, 2).to_bytes(len(bits) // 8, "big")


def jpeg_payload(jpeg):
    """A baseline JPEG of 4:2:0 with the standard Huffman tables as one RTP payload (RFC 2435), with its quantisation tables."""
    at, tables, width, height = 2, b"", 0, 0
    while True:
        marker, length = struct.unpack_from(">HH", jpeg, at)
        body = jpeg[at + 4:at + 2 + length]
        if marker == 0xFFDB:
            while body:
                tables, body = tables + body[1:65], body[65:]
        elif marker == 0xFFC0:
            height, width = struct.unpack_from(">HH", body, 1)
        at += 2 + length
        if marker == 0xFFDA:
            break
    return struct.pack(">IBBBBBBH", 0, 1, 255, width // 8, height // 8, 0, 0, len(tables)) + tables + jpeg[at:-2]


class Camera:
    """Paths: /good, /401, /silent, /half, /loss, /backwards, /absurd, /huge, /gone, /none, and /codec: H.264 on its first connections,
    until it has sent 20 frames; then it ends and sends `jpegs` for ever. `report_delay`: how long before its packets leave a frame was
    captured, by the sender reports."""

    def __init__(self, video, fps=20, report_delay=0.0, jpegs=()):
        self.jpegs, self.changed = [jpeg_payload(jpeg) for jpeg in jpegs], False
        self.video, self.fps, self.report_delay = Video(video), fps, report_delay
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self, path):
        return f"rtsp://127.0.0.1:{self.port}/{path}"

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def close(self):
        self.listener.close()

    def serve(self, connection):
        with connection, contextlib.suppress(OSError, IndexError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            read = connection.makefile("rb")
            while True:
                line = read.readline()
                if not line:
                    return
                if line.startswith(b"$"):
                    continue
                method, url, _ = line.decode(errors="replace").split(" ", 2)
                headers = {}
                while (header := read.readline().strip()):
                    name, _, value = header.decode().partition(":")
                    headers[name.lower()] = value.strip()
                if self.answer(connection, method, url.split("/")[3], headers):
                    return

    def answer(self, connection, method, path, headers):
        def say(status, more="", body=b""):
            head = f"RTSP/1.0 {status}\r\nCSeq: {headers.get('cseq', 0)}\r\n{more}"
            connection.sendall(head.encode() + (f"Content-Length: {len(body)}\r\n".encode() if body else b"") + b"\r\n" + body)

        if path == "401":
            say("401 Unauthorized", 'WWW-Authenticate: Basic realm="camera"\r\n')
        elif path == "none":
            say("404 Not Found")
        elif method == "OPTIONS":
            say("200 OK", "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n")
        elif method == "DESCRIBE":
            if path == "half":  # a head without its end
                connection.sendall(b"RTSP/1.0 200 OK\r\nContent-Length: 500\r\n\r\nv=0\r\n")
                time.sleep(30)
                return True
            if path == "codec" and self.changed:
                say("200 OK", "Content-Type: application/sdp\r\n",
                    b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=camera\r\nt=0 0\r\nm=video 0 RTP/AVP 26\r\na=control:video\r\n")
                return False
            sps = sps_of(16384, 16384) if path == "huge" else self.video.sps
            sets = ",".join(base64.b64encode(each).decode() for each in (sps, self.video.pps))
            say("200 OK", "Content-Type: application/sdp\r\n", (
                "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=camera\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
                f"a=fmtp:96 packetization-mode=1;sprop-parameter-sets={sets}\r\na=control:video\r\n").encode())
        elif method == "SETUP":
            say("200 OK", "Session: 1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n")
        elif method == "PLAY":
            say("200 OK", "Session: 1\r\n")
            self.play(connection, path)
            return True
        else:
            say("200 OK")
        return False

    def play(self, connection, path):
        if path == "silent":
            time.sleep(30)
            return
        sequence, begin, ssrc = 0, time.time(), 7
        if path == "codec" and self.changed:
            for number in range(10**6):
                time.sleep(max(0.0, begin + number / self.fps - time.time()))
                packet = struct.pack(">BBHII", 0x80, 0x80 | 26, number & 0xFFFF, number * 90000 // self.fps & 0xFFFFFFFF, ssrc) + self.jpegs[number % len(self.jpegs)]
                connection.sendall(b"$\x00" + struct.pack(">H", len(packet)) + packet)
        for number, unit in enumerate(self.video.units):
            planned = begin + number / self.fps
            time.sleep(max(0.0, planned - time.time()))
            ticks = number * 90000 // self.fps
            if path == "backwards":
                ticks = (1000 - number) * 90000 // self.fps
            if path == "absurd" and number % 10 == 5:
                ticks += 1 << 31
            if path == "codec" and number == 20:
                self.changed = True
                return
            if path == "gone" and number == 10:
                connection.sendall(b"$\x00\x05\xdc" + b"x" * 20)  # a packet that breaks off
                return
            if number % 10 == 0:
                seconds = planned - self.report_delay + 2208988800
                report = struct.pack(">BBHIQIII", 0x80, 200, 6, ssrc, int(seconds * 2**32), ticks & 0xFFFFFFFF, 0, 0)
                connection.sendall(b"$\x01" + struct.pack(">H", len(report)) + report)
            nals = ([self.video.sps, self.video.pps] if unit[-1][0] & 31 == 5 and path != "huge" else []) + unit
            for i, nal in enumerate(nals):
                for payload, last in fragments(nal):
                    sequence += 1
                    if path == "loss" and sequence % 37 == 20:
                        continue  # the packet never arrives
                    marker = 0x80 if last and i == len(nals) - 1 else 0
                    packet = struct.pack(">BBHII", 0x80, 96 | marker, sequence & 0xFFFF, ticks & 0xFFFFFFFF, ssrc) + payload
                    connection.sendall(b"$\x00" + struct.pack(">H", len(packet)) + packet)


def fragments(nal, most=1200):
    """A NAL unit as it is, or in FU-A fragments (RFC 6184, 5.8): (payload, whether it is the last)."""
    if len(nal) <= most:
        yield nal, True
        return
    for at in range(1, len(nal), most):
        last = at + most >= len(nal)
        head = (0x80 if at == 1 else 0) | (0x40 if last else 0) | nal[0] & 31
        yield bytes([nal[0] & 0xE0 | 28, head]) + nal[at:at + most], last


@contextlib.contextmanager
def rtsp_camera(video, **options):
    camera = Camera(video, **options)
    try:
        yield camera
    finally:
        camera.close()
