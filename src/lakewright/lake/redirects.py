"""Places that are elsewhere while a test of the project runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath

from lakewright.plan.resource import Resource

__all__ = ["Redirects"]


@dataclass(frozen=True, slots=True)
class Redirects:
    """Which places are moved, and below which folder they are then.

    Attributes:
        folder: Whatever is written lies below it, each place under its own path.
        roots: Places that are moved, with all that is inside of them and all that they are inside of.
    """

    folder: Path
    roots: frozenset[Resource]

    @classmethod
    def of(cls, folder: Path, places: Iterable[str]) -> Redirects:
        """Return the redirects of some places, local paths or URIs."""
        return cls(folder, frozenset(Resource.file(_plain(place)) for place in places))

    def __call__(self, place: str) -> str:
        """Return where a place is: a local path in the folder if it is moved.

        Example:
            >>> redirects = Redirects.of(Path("/tmp/t"), ["/lake/gold", "s3a://bucket/x"])
            >>> redirects("/lake/gold/prices"), redirects("/lake/raw"), redirects("s3a://bucket/x/y")
            ('/tmp/t/lake/gold/prices', '/lake/raw', '/tmp/t/s3a/bucket/x/y')
        """
        wanted = Resource.file(_plain(place))
        is_moved = any(root.intersects(wanted) for root in self.roots)
        return self.inside(place) if is_moved else place

    def inside(self, place: str) -> str:
        """Return the path that a place has in the folder."""
        scheme, _, rest = place.rpartition("://")
        path = normpath(f"/{scheme}/{rest.lstrip('/')}") if scheme else normpath(f"/{place.lstrip('/')}")
        return f"{self.folder}{path.rstrip('/')}"


def _plain(place: str) -> str:
    return place if "://" in place else normpath(place)
