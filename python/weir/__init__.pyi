import os
from typing import Any, Iterable, Literal, TypeAlias

from numpy.typing import NDArray

from weir._feed import Batch as Batch
from weir._feed import Feed as Feed
from weir._model import Model as Model
from weir._results import load as load

__all__ = ["Batch", "Feed", "Model", "augment", "draws", "load", "prepare"]

_Path: TypeAlias = str | os.PathLike[str]

def draws(
    width: int, height: int, first: int = 0, count: int = 1, *, seed: int = 0, epoch: int = 0, **options: Any
) -> dict[str, NDArray[Any]]: ...
def augment(encoded: bytes, *, seed: int = 0, epoch: int = 0, sample: int = 0, **options: Any) -> NDArray[Any]: ...
def prepare(
    sources: _Path | Iterable[_Path],
    folder: _Path,
    *,
    format: Literal["files", "tar", "tfrecord", "raw"] = "files",
    recipe: _Path | None = None,
    labels: _Path | None = None,
    workers: int = 0,
    shard_bytes: int | None = None,
    quality: int | None = None,
    replicate: int = 0,
    no_duplicates: bool = False,
    sample: int = 0,
    seed: int = 1,
) -> dict[str, Any]: ...
