"""The child of _process.ProcessFeed: python -m weir._child SOCKET PARENT."""
import collections
import ctypes
import json
import mmap
import os
import select
import signal
import socket
import sys

import numpy as np

from weir import _weir

PR_SET_PDEATHSIG = 1


class Child:
    def __init__(self, connection):
        self.socket, self.received, self.descriptors = connection, b"", collections.deque()
        self.slots, self.free = {}, collections.deque()
        self.turn, self.failed = 0, False
        self.feed = None

    def send(self, message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self):
        while b"\n" not in self.received:
            more, descriptors, _, _ = socket.recv_fds(self.socket, 1 << 16, 16)
            if not more:
                sys.exit(0)  # the parent closed the feed, or is gone
            self.received += more
            self.descriptors.extend(descriptors)
        line, _, self.received = self.received.partition(b"\n")
        return json.loads(line)

    def waiting(self):
        return b"\n" in self.received or bool(select.select([self.socket], [], [], 0)[0])

    def open(self):
        wanted = self.receive()
        self.feed = _weir.Feed(wanted["set"], dict(wanted["options"]))
        self.batch = batch = wanted["options"].get("batch") or 1
        name, dtype, shape, mask = self.feed.form()
        self.image_bytes = batch * int(np.prod(shape)) * np.dtype(dtype).itemsize
        self.mask_begin = (self.image_bytes + 63) // 64 * 64
        self.numbers_begin = (self.mask_begin + (batch * mask[0] * mask[1] if mask else 0) + 63) // 64 * 64
        self.send({"answer": {"images": self.feed.images(), "classes": self.feed.classes(), "batches_per_epoch": self.feed.batches_per_epoch(), "state": self.feed.state(),
                              "left": self.feed.batches_left(), "batch": batch, "form": [name, dtype, shape, mask], "image_bytes": self.image_bytes,
                              "mask_begin": self.mask_begin, "numbers_begin": self.numbers_begin,
                              "slot_bytes": self.numbers_begin + 16 * batch}})

    def obey(self, message):
        if "new" in message:
            descriptor = self.descriptors.popleft()
            self.slots[message["new"]] = mmap.mmap(descriptor, 0)
            os.close(descriptor)
            self.free.append(message["new"])
        elif "free" in message:
            self.free.append(message["free"])
        else:
            self.call(message["call"], message["arguments"])

    def call(self, method, arguments):
        try:
            answer = getattr(self.feed, method)(*arguments)
        except Exception as error:
            self.send({"error": type(error).__name__, "text": str(error), "answers": True, "turn": self.turn})
            return
        if method in ("set_state", "set_epoch"):
            self.turn += 1
            self.failed = False
            answer = {"turn": self.turn, "state": self.feed.state(), "left": self.feed.batches_left()}
        self.send({"answer": os.fsdecode(answer) if isinstance(answer, bytes) else answer})

    def run(self):
        while True:
            while self.failed or not self.free or self.waiting():
                self.obey(self.receive())
            self.step()

    def step(self):
        try:
            got = self.feed.next()
        except Exception as error:
            self.failed = True  # until the parent moves the feed
            self.send({"error": type(error).__name__, "text": str(error), "turn": self.turn})
            return
        message = {"turn": self.turn, "state": self.feed.state(), "left": self.feed.batches_left()}
        if got is not None:
            image, labels, samples, count, epoch, position, bad, mask = got
            slot = self.free.popleft()
            memory = np.frombuffer(self.slots[slot], dtype=np.uint8)
            memory[: self.image_bytes] = image.reshape(-1).view(np.uint8)
            if mask is not None:
                memory[self.mask_begin:self.mask_begin + mask.size] = mask.reshape(-1)
            numbers = memory[self.numbers_begin:self.numbers_begin + 16 * self.batch].view(np.int64)
            numbers[: self.batch], numbers[self.batch:] = labels, samples
            message |= {"slot": slot, "count": count, "epoch": epoch, "position": position, "bad": bad}
        self.send(message)


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[2]):
        return  # the parent was gone before the kernel knew
    child = Child(socket.socket(fileno=int(sys.argv[1])))
    try:
        child.open()
    except Exception as error:
        child.send({"error": type(error).__name__, "text": str(error), "answers": True, "turn": 0})
        return
    try:
        child.run()
    except (BrokenPipeError, ConnectionResetError):
        pass
    finally:
        child.feed.close()


if __name__ == "__main__":
    main()
