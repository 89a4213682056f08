"""The rule of Kubernetes' HorizontalPodAutoscaler (autoscaling/v2), with the settings of a manifest. Pure: takes the time."""
import math
import pathlib

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOLERANCE = 0.1  # the controller's default
SYNC_S = 15      # between two looks, its default


def quantity(text):
    """A quantity of Kubernetes: "20m" is 0.02."""
    text = str(text)
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


class Autoscaler:
    """`metric`: the mean over all replicas. Times of the manifest and of the controller are divided by `speed`."""

    def __init__(self, manifest=ROOT / "deploy/kubernetes/base/hpa.yaml", speed=1.0, target=None, largest=None):
        spec = yaml.safe_load(pathlib.Path(manifest).read_text())["spec"]
        self.least, self.most = spec["minReplicas"], largest or spec["maxReplicas"]
        self.target = target or quantity(spec["metrics"][0]["pods"]["target"]["averageValue"])
        self.up, self.down = spec["behavior"]["scaleUp"], spec["behavior"]["scaleDown"]
        self.speed, self.sync_s = speed, SYNC_S / speed
        self.wishes, self.changes = [], []  # (time, replicas wanted), (time, change)

    def _allowed(self, now, replicas, behaviour, sign):
        """The replicas that the policies of one direction allow."""
        bounds = []
        for policy in behaviour["policies"]:
            since = now - policy["periodSeconds"] / self.speed
            before = replicas - sum(change for at, change in self.changes if at > since and change * sign > 0)
            step = policy["value"] if policy["type"] == "Pods" else before * policy["value"] / 100
            bounds.append(before + sign * step)
        return math.ceil(max(bounds)) if sign > 0 else math.floor(min(bounds))

    def decide(self, now, replicas, metric):
        """Returns how many replicas there shall be."""
        ratio = metric / self.target
        wish = replicas if abs(ratio - 1) <= TOLERANCE else math.ceil(replicas * ratio)
        self.wishes.append((now, min(self.most, max(self.least, wish))))
        longest = max(self.up["stabilizationWindowSeconds"], self.down["stabilizationWindowSeconds"]) / self.speed
        self.wishes = [(at, wanted) for at, wanted in self.wishes if at >= now - longest]
        # Up by the least that was wanted lately, down by the most.
        rise = min(wanted for at, wanted in self.wishes if at >= now - self.up["stabilizationWindowSeconds"] / self.speed)
        fall = max(wanted for at, wanted in self.wishes if at >= now - self.down["stabilizationWindowSeconds"] / self.speed)
        wanted = replicas
        if rise > replicas:
            wanted = min(rise, max(replicas, self._allowed(now, replicas, self.up, 1)))
        elif fall < replicas:
            wanted = max(fall, min(replicas, self._allowed(now, replicas, self.down, -1)))
        if wanted != replicas:
            self.changes.append((now, wanted - replicas))
            self.changes = self.changes[-1000:]
        return wanted
