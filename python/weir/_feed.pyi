import os
from typing import Any, Iterator, Literal, Sequence, TypedDict

from numpy.typing import NDArray

class Batch(TypedDict, total=False):
    image: NDArray[Any]
    data: NDArray[Any]
    mask: NDArray[Any]
    label: NDArray[Any]
    index: NDArray[Any]
    count: int

class Feed:
    def __init__(
        self,
        set: str | os.PathLike[str],
        *,
        batch: int = 1,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        threads: int = 0,
        prefetch: int = 4,
        ends: Literal["drop", "pad", "wrap"] = "drop",
        sampler: Literal["global", "sequential", "blocks", "weighted", "balanced"] = "global",
        block: int = 1024,
        window: int = 8,
        weights: Sequence[float] | NDArray[Any] | None = None,
        subset: Sequence[int] | NDArray[Any] | None = None,
        bad: Literal["replace", "skip", "stop"] = "replace",
        size: tuple[int, int] = (224, 224),
        crop: Literal["random", "centre", "none"] = "random",
        area: tuple[float, float] = (0.08, 1.0),
        aspect: tuple[float, float] = (0.75, 1.3333333333333333),
        short_side: int = 256,
        flip: float = 0.5,
        vertical_flip: float = 0.0,
        rotation: float = 0.0,
        brightness: float = 0.0,
        contrast: float = 0.0,
        saturation: float = 0.0,
        hue: float = 0.0,
        grayscale: float = 0.0,
        orientation: Literal["exif", "ignore"] = "exif",
        dtype: Literal["uint8", "float16", "float32"] = "uint8",
        layout: Literal["NHWC", "NCHW"] = "NHWC",
        mean: tuple[float, float, float] = (0.485, 0.456, 0.406),
        std: tuple[float, float, float] = (0.229, 0.224, 0.225),
        max_pixels: int = 100_000_000,
        tolerate_damage: bool = False,
        index: str | os.PathLike[str] | None = None,
        verify: bool = True,
        masks: str | os.PathLike[str] | None = None,
        mask_fill: int = 0,
        reads: int = -1,
        cache_bytes: int = 0,
        cache_folder: str | os.PathLike[str] | None = None,
        cache_decoded: bool = False,
        pin_memory: bool | str = False,
        process: bool = False,
    ) -> None: ...
    def __iter__(self) -> Iterator[Batch]: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> Feed: ...
    def __exit__(self, *_: object) -> None: ...
    @property
    def batches_per_epoch(self) -> int: ...
    @property
    def images(self) -> int: ...
    @property
    def classes(self) -> list[str]: ...
    @property
    def epoch(self) -> int: ...
    def name(self, index: int) -> str: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
