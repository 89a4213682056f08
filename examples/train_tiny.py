#!/usr/bin/env python3
"""Trains a small classifier with a feed that is killed and resumed in the middle.

    python3 examples/train_tiny.py SET --checkpoint run.ckpt [--epochs 12] [--stop-after STEPS]

With torch it trains a small convolutional network on the CPU, without torch a softmax regression on colour features in
numpy. It writes a checkpoint after each epoch and every 10 steps: weights, optimiser and the feed's state. Run it
again after a kill: it goes on from the checkpoint, and ends with the same weights as a run without the kill.
"""
import argparse
import hashlib
import os
import pickle

import numpy as np

import weir

SIDE = 32


class Softmax:
    """Softmax regression in numpy, on means and deviations of colour in a grid of cells; trained by momentum."""

    def __init__(self, classes, seed):
        self.width = 4 * 4 * 6 + 1
        self.weights = np.random.default_rng(seed).normal(0, 0.01, (self.width, classes))
        self.velocity = np.zeros_like(self.weights)

    def features(self, images):
        cells = images.reshape(len(images), 4, SIDE // 4, 4, SIDE // 4, 3).astype(np.float64) / 255
        means, deviations = cells.mean(axis=(2, 4)) - 0.5, cells.std(axis=(2, 4))
        ones = np.ones((len(images), 1))
        return np.concatenate([means.reshape(len(images), -1), deviations.reshape(len(images), -1), ones], axis=1)

    def scores(self, images):
        return self.features(images) @ self.weights

    def step(self, images, labels):
        features = self.features(images)
        scores = features @ self.weights
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        shares[np.arange(len(labels)), labels] -= 1
        self.velocity = 0.9 * self.velocity - 0.5 * features.T @ shares / len(labels)
        self.weights = self.weights + self.velocity

    def state(self):
        return {"weights": self.weights, "velocity": self.velocity}

    def load(self, state):
        self.weights, self.velocity = state["weights"], state["velocity"]

    def digest(self):
        return hashlib.sha256(self.weights.tobytes()).hexdigest()


class Network:
    """Three convolutions in torch, trained by Adam."""

    def __init__(self, classes, seed):
        import torch
        self.torch = torch
        torch.manual_seed(seed)
        torch.use_deterministic_algorithms(True)
        nn = torch.nn
        self.net = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(),
                                 nn.Flatten(), nn.Linear(64 * 16, classes))
        self.optimiser = torch.optim.Adam(self.net.parameters(), lr=2e-3)

    def scores(self, images):
        with self.torch.no_grad():
            return self.net(self._input(images)).numpy()

    def _input(self, images):
        return self.torch.from_numpy(images).permute(0, 3, 1, 2).float() / 127.5 - 1

    def step(self, images, labels):
        loss = self.torch.nn.functional.cross_entropy(self.net(self._input(images)), self.torch.from_numpy(labels))
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()

    def state(self):
        return {"net": self.net.state_dict(), "optimiser": self.optimiser.state_dict()}

    def load(self, state):
        self.net.load_state_dict(state["net"])
        self.optimiser.load_state_dict(state["optimiser"])

    def digest(self):
        return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in self.net.parameters())).hexdigest()


def save(path, model, feed, steps):
    """Writes the checkpoint whole or not at all."""
    with open(path + ".new", "wb") as file:
        pickle.dump({"model": model.state(), "feed": feed.state_dict(), "steps": steps}, file)
    os.replace(path + ".new", path)


def accuracy(model, set_path, threads):
    right = count = 0
    feed = weir.Feed(set_path, batch=64, crop="centre", short_side=SIDE, size=(SIDE, SIDE), flip=0, sampler="sequential", ends="pad", threads=threads)
    for batch in feed:
        rows = batch["count"]
        right += int((model.scores(batch["image"][:rows]).argmax(axis=1) == batch["label"][:rows]).sum())
        count += rows
    return right / count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--stop-after", type=int, default=0, help="end the process without a word after so many steps")
    parser.add_argument("--model", choices=["auto", "torch", "numpy"], default="auto")
    arguments = parser.parse_args()

    feed = weir.Feed(arguments.set, batch=32, seed=arguments.seed, size=(SIDE, SIDE), area=(0.6, 1.0), threads=arguments.threads)
    kind = arguments.model
    if kind == "auto":
        try:
            import torch  # noqa: F401
            kind = "torch"
        except ImportError:
            kind = "numpy"
    model = (Network if kind == "torch" else Softmax)(len(feed.classes), arguments.seed)
    steps = 0
    if os.path.exists(arguments.checkpoint):
        with open(arguments.checkpoint, "rb") as file:
            kept = pickle.load(file)
        model.load(kept["model"])
        feed.load_state_dict(kept["feed"])
        steps = kept["steps"]
        print(f"goes on after {steps} steps", flush=True)
    taken = 0
    while feed.epoch < arguments.epochs:
        for batch in feed:
            model.step(batch["image"], batch["label"])
            steps += 1
            taken += 1
            if steps % 10 == 0:
                save(arguments.checkpoint, model, feed, steps)
            if taken == arguments.stop_after:
                os._exit(9)  # as a kill would
        save(arguments.checkpoint, model, feed, steps)
    print(f"accuracy {accuracy(model, arguments.set, arguments.threads):.4f}")
    print(f"weights {model.digest()}")


if __name__ == "__main__":
    main()
