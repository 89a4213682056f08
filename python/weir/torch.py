"""A drop-in for torch.utils.data.DataLoader over a set of pictures.

    from weir.torch import Loader
    loader = Loader("set", batch_size=256, shuffle=True, seed=1)
    for images, labels in loader: ...
"""
import warnings

import torch

from weir._feed import Feed

_DTYPES = {torch.uint8: "uint8", torch.float16: "float16", torch.float32: "float32"}


class Loader:
    """Iterates (images, labels) as a DataLoader over torchvision's ImageFolder does; one iteration is one epoch.

    With masks= it iterates (images, masks, labels); masks: uint8 [batch, height, width].

    images: [batch, 3, height, width] of `dtype`, without a copy of the feed's memory; labels: int64 [batch].
    pin_memory=True copies each batch into torch's pinned memory, which may be let go of while a copy to the GPU is
    under way. Without a GPU it warns, as a DataLoader does. num_workers is the number of threads. drop_last=False gives a shorter last batch. Other options: weir.Feed.
    Under torch.distributed rank and world come from the process group if they are not given.
    """

    def __init__(self, set, batch_size=1, shuffle=False, num_workers=0, drop_last=False, pin_memory=False,
                 prefetch_factor=4, dtype=torch.float32, **options):
        if dtype not in _DTYPES:
            raise ValueError(f"dtype is {dtype}: give torch.uint8, torch.float16 or torch.float32")
        if "rank" not in options and torch.distributed.is_available() and torch.distributed.is_initialized():
            options["rank"] = torch.distributed.get_rank()
            options["world"] = torch.distributed.get_world_size()
        options.setdefault("sampler", "global" if shuffle else "sequential")
        options.setdefault("layout", "NCHW")
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.pin_memory = pin_memory and torch.cuda.is_available()
        if pin_memory and not self.pin_memory:
            warnings.warn("pin_memory=True and torch finds no GPU: batches stay in pageable memory", stacklevel=2)
        self.feed = Feed(set, batch=batch_size, threads=num_workers, prefetch=prefetch_factor,
                         ends="drop" if drop_last else "pad", dtype=_DTYPES[dtype], **options)

    def __len__(self):
        return self.feed.batches_per_epoch

    def __iter__(self):
        for batch in self.feed:
            count = batch["count"]
            if count == 0:
                continue  # the last batch of a rank that has no sample left
            arrays = [batch[key][:count] for key in ("image", "data", "mask", "label") if key in batch]
            tensors = [torch.from_numpy(array) for array in arrays]
            if self.pin_memory:
                tensors[:-1] = [tensor.pin_memory() for tensor in tensors[:-1]]
            yield tuple(tensors)

    def set_epoch(self, epoch):
        """As DistributedSampler.set_epoch."""
        self.feed.set_epoch(epoch)

    def state_dict(self):
        return self.feed.state_dict()

    def load_state_dict(self, state):
        self.feed.load_state_dict(state)
