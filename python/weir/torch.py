"""A drop-in for torch.utils.data.DataLoader over a set of pictures.

    from weir.torch import Loader
    loader = Loader("set", batch_size=256, shuffle=True, seed=1)
    for images, labels in loader: ...
"""
import warnings

import torch

from weir._feed import Feed

_DTYPES = {torch.uint8: "uint8", torch.float16: "float16", torch.float32: "float32"}

# Arguments of a DataLoader that this one has no place for. None, False and 0 are what it does anyway.
_REFUSED = {
    "collate_fn": "batches are made as arrays, sample by sample there is nothing to collate: change the batch in the loop",
    "timeout": "no batch is given up: a store that does not answer raises OSError by itself",
    "batch_sampler": "give batch_size, and sampler, weights or subset as weir.Feed has them",
    "worker_init_fn": "its workers are threads without Python: their chances depend on seed alone",
    "multiprocessing_context": "its workers are threads: process=True makes the batches in a process of its own",
    "pin_memory_device": "give pin_memory=True: batches are pinned for every device",
}


class Loader:
    """Iterates (images, labels) as a DataLoader over torchvision's ImageFolder does; one iteration is one epoch.

    With masks= it iterates (images, masks, labels); masks: uint8 [batch, height, width].

    images: [batch, 3, height, width] of `dtype`, without a copy of the feed's memory; labels: int64 [batch].
    pin_memory=True copies each batch into torch's pinned memory, which may be let go of while a copy to the GPU is
    under way. Without a GPU it warns, as a DataLoader does. num_workers is the number of threads, which live as long as
    the loader (persistent_workers). generator: its initial seed is the seed of the order. Other options: weir.Feed.

    Labels are those of weir.Feed, and not always ImageFolder's. Where all folders of classes are named by whole numbers
    ("0", "2", "10"), each is its own label, and ImageFolder counts them in the order of text (0, 2, 1). A folder without
    a picture is no class, and ImageFolder refuses it; a hidden folder is none, and ImageFolder takes it.

    Under torch.distributed rank and world come from the process group if they are not given. All ranks get the same
    number of batches, all of them whole: if the last samples do not fill a batch on every rank, samples from the epoch's
    beginning are repeated (`repeats` of them, and rank 0 warns), or with drop_last=True the last ones are left out. A
    single rank repeats nothing: drop_last=False gives a shorter last batch.

    An epoch always begins with its first batch. After an iteration that was broken off, the next one is the next epoch;
    a look at the first batch (`next(iter(loader))`) uses no epoch up. After load_state_dict the first iteration goes on
    where the state stands. A second `iter` takes over from the first, which then raises RuntimeError. With bad="skip" a
    batch without a row is left out, so `len` is the most.
    """

    def __init__(self, set, batch_size=1, shuffle=False, num_workers=0, drop_last=False, pin_memory=False,
                 prefetch_factor=None, dtype=torch.float32, generator=None, persistent_workers=True, **options):
        if dtype not in _DTYPES:
            raise ValueError(f"dtype is {dtype}: give torch.uint8, torch.float16 or torch.float32")
        for name, reason in _REFUSED.items():
            if options.pop(name, None):
                raise ValueError(f"{name}: {reason}")
        if "rank" not in options and torch.distributed.is_available() and torch.distributed.is_initialized():
            options["rank"] = torch.distributed.get_rank()
            options["world"] = torch.distributed.get_world_size()
        world = options.get("world", 1)
        options.setdefault("sampler", "global" if shuffle else "sequential")
        options.setdefault("layout", "NCHW")
        if not isinstance(options["sampler"], str):
            raise ValueError("sampler: give the name of an order, as weir.Feed has them, or the samples as subset")
        if world > 1 and options.get("bad") == "skip":
            raise ValueError('bad="skip": a rank whose batch has no row left would have fewer batches than the others: give "replace"')
        if generator is not None:
            if world > 1:
                raise ValueError("generator: each rank has its own, and all need one order: give seed")
            if "seed" in options:
                raise ValueError("generator, seed: both give the order: give one of them")
            options["seed"] = generator.initial_seed() % 2**63
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.pin_memory = pin_memory and torch.cuda.is_available()
        if pin_memory and not self.pin_memory:
            warnings.warn("pin_memory=True and torch finds no GPU: batches stay in pageable memory", stacklevel=2)
        ends = "drop" if drop_last else "wrap" if world > 1 else "pad"
        self.feed = Feed(set, batch=batch_size, threads=num_workers, prefetch=4 if prefetch_factor is None else prefetch_factor,
                         ends=ends, dtype=_DTYPES[dtype], **options)
        subset = options.get("subset")
        samples = self.feed.images if subset is None else len(subset)
        drawn = options["sampler"] in ("balanced", "weighted")  # with replacement: each repeats by its nature
        self.repeats = max(0, len(self) * batch_size * world - samples) if ends == "wrap" and not drawn else 0
        if self.repeats and options.get("rank", 0) == 0:
            warnings.warn(f"{samples} samples do not fill {len(self)} batches of {world} x {batch_size}: {self.repeats} are repeated in "
                          "each epoch; drop_last=True leaves the last ones out instead", stacklevel=2)
        self._turn = 0  # of the iterator that may take batches
        self._epoch = self._taken = 0  # of the last iteration: its epoch, and its batches; 0: none, or it came to its end

    def __len__(self):
        """Returns the batches of an epoch."""
        return self.feed.batches_per_epoch

    def __iter__(self):
        self._turn += 1
        if self._taken > 0:  # broken off
            self.feed.set_epoch(self._epoch + (1 if self._taken > 1 else 0))
        self._epoch, self._taken = self.feed.epoch, 0
        return self._batches(self._turn)

    def _batches(self, turn):
        batches = iter(self.feed)
        while True:
            if turn != self._turn:
                raise RuntimeError("another iteration of this loader began: it takes the batches now")
            batch = next(batches, None)
            if batch is None:
                self._taken = 0
                return
            self._taken += 1
            count = batch["count"]
            if count == 0:
                continue  # bad="skip" left nothing of it
            arrays = [batch[key][:count] for key in ("image", "data", "mask", "label") if key in batch]
            tensors = [torch.from_numpy(array) for array in arrays]
            if self.pin_memory:
                tensors[:-1] = [tensor.pin_memory() for tensor in tensors[:-1]]
            yield tuple(tensors)

    def set_epoch(self, epoch):
        """As DistributedSampler.set_epoch: the next iteration is this epoch, from its first batch on."""
        self._turn += 1
        self._taken = 0
        self.feed.set_epoch(epoch)

    def state_dict(self):
        return self.feed.state_dict()

    def load_state_dict(self, state):
        """The next iteration goes on from this state."""
        self._turn += 1
        self._taken = 0
        self.feed.load_state_dict(state)
