"""Header fields as they came: in order, repeated ones included, found whatever their capitals."""

from __future__ import annotations

from typing import Iterable, Iterator, List, Mapping, Tuple


class Headers(Mapping[str, str]):
    """A mapping whose names ignore capitals. A name that came several times has its first value here; `get_all` has them all."""

    def __init__(self, pairs: Iterable[Tuple[str, str]] = ()) -> None:
        self.pairs: Tuple[Tuple[str, str], ...] = tuple(pairs)

    def __getitem__(self, name: str) -> str:
        for known, value in self.pairs:
            if known.lower() == name.lower():
                return value
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and any(known.lower() == name.lower() for known, _ in self.pairs)

    def __iter__(self) -> Iterator[str]:
        seen = set()
        for name, _ in self.pairs:
            if name.lower() not in seen:
                seen.add(name.lower())
                yield name

    def __len__(self) -> int:
        return len({name.lower() for name, _ in self.pairs})

    def get_all(self, name: str) -> List[str]:
        """Every value of a name, in order."""
        return [value for known, value in self.pairs if known.lower() == name.lower()]

    def __repr__(self) -> str:
        return f"Headers({list(self.pairs)!r})"
