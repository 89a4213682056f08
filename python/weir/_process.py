"""A feed in a process of its own, so that its threads never wait for, or hold up, the trainer's interpreter.

The child makes batches and copies each into a slot: memory that both processes map (memfd). A socket carries one line
of JSON for each message. The memory has no name, so nothing of it is left when both processes are gone. The child ends
with its parent, also when that is killed: the kernel sends it a signal, and its socket closes.
"""
import collections
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import weakref

import numpy as np

SLOTS = 3  # batches between the processes at first; more if the consumer keeps more

_ERRORS = {error.__name__: error for error in (ValueError, TypeError, RuntimeError, FileNotFoundError, MemoryError, OSError, IndexError)}


class _Rows(np.ndarray):
    """The memory of a slot. Arrays that a consumer has keep it alive, so its end is theirs."""


class ProcessFeed:
    """Has the methods of _weir.Feed that weir.Feed calls. One thread at a time."""

    def __init__(self, set_path, options):
        ours, theirs = socket.socketpair()
        self._socket, self._received, self._messages = ours, b"", collections.deque()
        self._owner = os.getpid()
        self._slots, self._freed, self._at_child = {}, collections.deque(), 0
        self._turn = 0  # rises when the feed moves elsewhere; batches of an earlier turn are dropped
        try:
            self._child = subprocess.Popen([sys.executable, "-m", "weir._child", str(theirs.fileno()), str(os.getpid())], pass_fds=[theirs.fileno()],
                                           env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)})
        finally:
            theirs.close()
        try:
            self._send({"set": set_path, "options": options})
            self._facts = self._answer()
        except BaseException:
            self.close()
            raise
        self._state, self._left = self._facts["state"], self._facts["left"]
        for _ in range(SLOTS):
            self._add_slot()

    def next(self):
        self._check()
        while self._freed:
            self._send({"free": self._freed.popleft()})
            self._at_child += 1
        if self._at_child == 0:
            self._add_slot()
        while True:
            message = self._messages.popleft() if self._messages else self._receive()
            slot = message.get("slot")
            if slot is not None:
                self._at_child -= 1
            if message["turn"] != self._turn:
                if slot is not None:
                    self._freed.append(slot)
                    self._send({"free": self._freed.pop()})
                    self._at_child += 1
                continue
            if "error" in message:
                self._raise(message)
            self._state, self._left = message["state"], message["left"]
            return None if slot is None else self._batch(message)

    def _batch(self, message):
        slot, facts = message["slot"], self._facts
        # Made straight over the map: numpy lets a view of a plain array skip what lies between.
        rows = _Rows((self._facts["slot_bytes"],), np.uint8, self._slots[slot])
        weakref.finalize(rows, self._freed.append, slot).atexit = False
        batch, image_bytes = facts["batch"], facts["image_bytes"]
        _, dtype, shape, mask_shape = facts["form"]
        plain = rows.view(np.ndarray)
        image = plain[:image_bytes].view(dtype).reshape([batch, *shape])
        mask = None
        if mask_shape:
            mask = plain[facts["mask_begin"]:facts["mask_begin"] + batch * mask_shape[0] * mask_shape[1]].reshape([batch, *mask_shape])
        numbers = plain[facts["numbers_begin"]:facts["numbers_begin"] + 16 * batch].view(np.int64)
        return image, numbers[:batch], numbers[batch:], message["count"], message["epoch"], message["position"], message["bad"], mask

    def form(self):
        name, dtype, shape, mask = self._facts["form"]
        return name, dtype, tuple(shape), tuple(mask) if mask else None

    def _add_slot(self):
        number = len(self._slots)
        size = self._facts["slot_bytes"]
        memory = os.memfd_create(f"weir-feed-{number}", os.MFD_CLOEXEC)
        try:
            os.ftruncate(memory, size)
            self._slots[number] = mmap.mmap(memory, size)
            socket.send_fds(self._socket, [json.dumps({"new": number}).encode() + b"\n"], [memory])
        except (BrokenPipeError, ConnectionResetError):
            self._ended()
        finally:
            os.close(memory)
        self._at_child += 1

    def _check(self):
        if self._child is None:
            raise RuntimeError("this feed is closed")
        if os.getpid() != self._owner:
            raise RuntimeError("this feed was opened before a fork: open it in the child")

    def _send(self, message):
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            self._ended()

    def _receive(self):
        while b"\n" not in self._received:
            try:
                more = self._socket.recv(1 << 16)
            except ConnectionResetError:
                more = b""
            if not more:
                self._ended()
            self._received += more
        line, _, self._received = self._received.partition(b"\n")
        return json.loads(line)

    def _ended(self):
        child = self._child
        status = child.wait() if child is not None else None
        raise RuntimeError(f"the feed's process ended with status {status}: open the feed again, and go on with its state")

    def _raise(self, message):
        raise _ERRORS.get(message["error"], RuntimeError)(message["text"])

    def _answer(self):
        while True:
            message = self._receive()
            if "answer" in message:
                return message["answer"]
            if "error" in message and message.get("answers"):
                self._raise(message)
            self._messages.append(message)

    def _call(self, method, *arguments):
        self._check()
        self._send({"call": method, "arguments": arguments})
        return self._answer()

    def _move(self, method, argument):
        got = self._call(method, argument)
        self._turn, self._state, self._left = got["turn"], got["state"], got["left"]

    def set_state(self, text):
        self._move("set_state", text)

    def set_epoch(self, epoch):
        now = json.loads(self._state)
        if now["epoch"] != epoch or now["position"] != 0:  # the child is ahead of what was taken
            self._move("set_epoch", epoch)

    def state(self):
        return self._state

    def batches_left(self):
        return self._left

    def batches_per_epoch(self):
        return self._facts["batches_per_epoch"]

    def images(self):
        return self._facts["images"]

    def classes(self):
        return self._facts["classes"]

    def name(self, sample):
        return os.fsencode(self._call("name", sample))

    def counters(self):
        return self._call("counters")

    def close(self):
        child, self._child = self._child, None
        if child is None or os.getpid() != self._owner:
            return
        self._socket.close()
        child.send_signal(signal.SIGKILL)
        child.wait()
