import os
from typing import Any, Iterable, Sequence

from numpy.typing import NDArray

class Model:
    labels: list[str]
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        recipe: str | os.PathLike[str] | None = None,
        threads: int = 0,
        providers: Sequence[str] | None = None,
    ) -> None: ...
    def prepare(self, pictures: Iterable[str | os.PathLike[str] | bytes]) -> NDArray[Any]: ...
    def __call__(self, pictures: Iterable[str | os.PathLike[str] | bytes]) -> NDArray[Any]: ...
    def classify(
        self, pictures: Iterable[str | os.PathLike[str] | bytes], top: int = 5
    ) -> list[list[tuple[str | int, float]]]: ...
