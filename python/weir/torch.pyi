import os
from typing import Any, Iterator

import torch

from weir._feed import Feed

class Loader:
    batch_size: int
    drop_last: bool
    pin_memory: bool
    feed: Feed
    repeats: int
    def __init__(
        self,
        set: str | os.PathLike[str],
        batch_size: int = 1,
        shuffle: bool = False,
        num_workers: int = 0,
        drop_last: bool = False,
        pin_memory: bool = False,
        prefetch_factor: int | None = None,
        dtype: torch.dtype = ...,
        generator: torch.Generator | None = None,
        persistent_workers: bool = True,
        **options: Any,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[tuple[torch.Tensor, ...]]: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...
