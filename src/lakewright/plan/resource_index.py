"""An index of resources that finds those that overlap a given one without comparing all of them.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (dependency analysis of all targets).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, takewhile
from typing import Generic, TypeVar

from lakewright.plan.resource import Resource

T = TypeVar("T")

Partition = tuple[tuple[str, str], ...]
_PATTERN_SIGNS = frozenset("*?[")


class ResourceIndex(Generic[T]):
    """Values by resource. A lookup costs time in the number of overlapping resources, not of all of them."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str], dict[str, _Parts[T]]] = {}
        self._below: dict[str, list[_Parts[T]]] = {}

    def add(self, resource: Resource, value: T) -> None:
        """Add a value under a resource."""
        stem = _stem(resource)
        named = self._at.setdefault((resource.category, stem), {})
        parts = named.get(resource.name)
        if parts is None:
            parts = named[resource.name] = _Parts(is_pattern=stem != resource.name)
            if resource.category == "file":
                for folder in _levels(stem)[:-1]:
                    self._below.setdefault(folder, []).append(parts)
        parts.add(resource, value)

    def touching(self, resource: Resource) -> Iterator[T]:
        """Yield the values of all resources that overlap this one."""
        stem = _stem(resource)
        is_pattern = stem != resource.name
        for parts in self._near(resource.category, stem):
            if is_pattern or parts.is_pattern:
                yield from parts.intersecting(resource)
            else:
                yield from parts.sharing(resource.partition)

    def _near(self, category: str, stem: str) -> Iterator[_Parts[T]]:
        """Yield the values of names at, above or below a path. No other name can overlap it."""
        for name in _levels(stem) if category == "file" else [stem]:
            yield from self._at.get((category, name), {}).values()
        if category == "file":
            yield from self._below.get(stem, ())


class _Parts(Generic[T]):
    """The values of one resource name, by the columns and values of the partition."""

    def __init__(self, *, is_pattern: bool) -> None:
        self.is_pattern = is_pattern
        self._by_columns: dict[tuple[str, ...], dict[Partition, list[T]]] = {}
        self._resources: dict[Partition, Resource] = {}

    def add(self, resource: Resource, value: T) -> None:
        partition = resource.partition
        self._resources[partition] = resource
        self._by_columns.setdefault(_columns(partition), {}).setdefault(partition, []).append(value)

    def sharing(self, partition: Partition) -> Iterator[T]:
        wanted = dict(partition)
        for columns, values in self._by_columns.items():
            if columns == _columns(partition):
                yield from values.get(partition, ())
                continue
            for own, found in values.items():
                if all(wanted.get(column, value) == value for column, value in own):
                    yield from found

    def intersecting(self, resource: Resource) -> Iterator[T]:
        for values in self._by_columns.values():
            for partition, found in values.items():
                if self._resources[partition].intersects(resource):
                    yield from found


def _columns(partition: Partition) -> tuple[str, ...]:
    return tuple(column for column, _ in partition)


def _stem(resource: Resource) -> str:
    """Return a path up to its first level that contains a pattern. Other resources keep their name."""
    if resource.category != "file" or _PATTERN_SIGNS.isdisjoint(resource.name):
        return resource.name
    return "/".join(takewhile(_PATTERN_SIGNS.isdisjoint, resource.name.split("/")))


def _levels(path: str) -> list[str]:
    """Return the folders above a path, the topmost first, and the path itself."""
    return list(accumulate(path.split("/"), lambda above, name: f"{above}/{name}"))
