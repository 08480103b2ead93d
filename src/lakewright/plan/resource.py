"""Resources that targets read and write. The order of targets and their taint follow from them.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (dependency analysis of all targets).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakewright.spec.models.places import Address


@dataclass(frozen=True, slots=True)
class Resource:
    """A folder, a table, or a partition of one.

    Attributes:
        category: `file`, `table` (case-insensitive) or `jdbc` (case-sensitive).
        name: A path or URI, in which `*` matches anything within one level, or the name of a table.
        partition: Pairs of column and value, sorted. Empty for the whole folder or table.
    """

    category: str
    name: str
    partition: tuple[tuple[str, str], ...] = ()

    @classmethod
    def file(cls, path: str, partition: Mapping[str, object] | None = None) -> Resource:
        """Return the resource for a path and everything below it."""
        return cls("file", _canonical_path(path), _sorted(partition))

    @classmethod
    def table(cls, name: str, partition: Mapping[str, object] | None = None) -> Resource:
        """Return the resource for a table of the catalog."""
        return cls("table", name.replace("`", "").lower(), _sorted(partition))

    @classmethod
    def at(cls, address: Address, partition: Mapping[str, object] | None = None) -> Resource:
        """Return the resource for a table of the lake: its folder, or its name in the catalog."""
        if address.location is not None:
            return cls.file(address.location, partition)
        return cls.table(str(address.name), partition)

    @classmethod
    def jdbc(cls, name: str, partition: Mapping[str, object] | None = None) -> Resource:
        """Return the resource for a table in another database. Its name keeps its case."""
        return cls("jdbc", name, _sorted(partition))

    @property
    def whole(self) -> Resource:
        """The folder or table that it is a partition of, or itself."""
        return Resource(self.category, self.name) if self.partition else self

    def contains(self, other: Resource) -> bool:
        """Return whether `other` is this resource or a part of it.

        Example:
            >>> Resource.file("/lake").contains(Resource.file("/lake/regions"))
            True
        """
        if self.category != other.category or not set(self.partition) <= set(other.partition):
            return False
        if self.category == "file":
            return _is_within(self.name, other.name)
        return self.name == other.name

    def intersects(self, other: Resource) -> bool:
        """Return whether the two resources overlap.

        Example:
            >>> Resource.table("t", {"p": "1"}).intersects(Resource.table("T"))
            True
        """
        if self.category != other.category or _differ(self.partition, other.partition):
            return False
        if self.category == "file":
            return _is_within(self.name, other.name) or _is_within(other.name, self.name)
        return self.name == other.name

    def __str__(self) -> str:
        part = "".join(f"[{column}={value}]" for column, value in self.partition)
        return f"{self.category}:{self.name}{part}"


def _sorted(partition: Mapping[str, object] | None) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((column.lower(), str(value)) for column, value in (partition or {}).items()))


def _differ(left: tuple[tuple[str, str], ...], right: tuple[tuple[str, str], ...]) -> bool:
    others = dict(right)
    return any(column in others and others[column] != value for column, value in left)


def _canonical_path(path: str) -> str:
    scheme, separator, rest = path.partition("://")
    if not separator:
        rest = scheme.removeprefix("file:")
        return "/" + rest.strip("/") if rest.startswith("/") else rest.rstrip("/")
    if scheme == "file":
        return "/" + rest.strip("/")
    return f"{canonical_scheme(scheme)}://{rest.rstrip('/')}"


_SCHEMES: Mapping[str, str] = {"s3a": "s3", "s3n": "s3", "wasbs": "wasb", "abfss": "abfs"}


def canonical_scheme(scheme: str) -> str:
    """Return the one scheme by which a place is known that has several.

    Example:
        >>> canonical_scheme("S3A"), canonical_scheme("gs")
        ('s3', 'gs')
    """
    return _SCHEMES.get(scheme.lower(), scheme.lower())


def _is_within(outer: str, inner: str) -> bool:
    outer_levels, inner_levels = outer.split("/"), inner.split("/")
    if len(outer_levels) > len(inner_levels):
        return False
    return all(
        ours == theirs or fnmatchcase(theirs, ours) or fnmatchcase(ours, theirs)
        for ours, theirs in zip(outer_levels, inner_levels, strict=False)
    )
