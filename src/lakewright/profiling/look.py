"""The files of an entity that are looked at: a few of each of a few slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lakewright.profiling.grouping import Group, merged_groups
from lakewright.profiling.places import FoundFile, Place, Skipped
from lakewright.profiling.reason import Code, Reason
from lakewright.profiling.sample import NotData
from lakewright.profiling.tables import Table, read_table

__all__ = ["Look", "merged_looks"]

_FILES_A_SLICE = 3


@dataclass(frozen=True, slots=True)
class Look:
    """The files of a group that were looked at.

    Attributes:
        tables: By slice, the files that hold data.
        pairs: Positions of slices in `tables` between which there is no other.
    """

    group: Group
    tables: tuple[tuple[Table, ...], ...]
    pairs: tuple[tuple[int, int], ...] = ()
    skipped: tuple[Skipped, ...] = ()
    findings: tuple[Reason, ...] = ()

    @classmethod
    def of(cls, group: Group, place: Place) -> Look:
        """Look at the files of the first, the last and some other slices."""
        chosen = _chosen(len(group.slices))
        tables: list[tuple[Table, ...]] = []
        skipped: list[Skipped] = []
        findings: list[Reason] = []
        for at in chosen:
            found = []
            for file in group.slices[at].files[:_FILES_A_SLICE]:
                try:
                    table = read_table(file, place.system)
                    found.append(_partly(table) if len(group.slices[at].files) > _FILES_A_SLICE else table)
                except NotData as error:
                    skipped.append(Skipped(file.name, error.reason))
                    findings += _fault_of(file, error.reason, is_alone=len(group.slices[at].files) == 1)
            tables.append(tuple(found))
        pairs = tuple(
            (one, other)
            for one, other in pairwise(range(len(chosen)))
            if chosen[other] - chosen[one] == 1 and tables[one] and tables[other]
        )
        return cls(group, tuple(tables), pairs, tuple(skipped), tuple(findings))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the first file."""
        return next((table.columns for found in self.tables for table in found), ())


def _chosen(count: int) -> list[int]:
    """Return the positions of the slices to look at: the first and last two, and one between.

    Example:
        >>> _chosen(3), _chosen(100)
        ([0, 1, 2], [0, 1, 50, 98, 99])
    """
    return sorted({0, 1, count // 2, count - 2, count - 1} & set(range(count)))


def _partly(table: Table) -> Table:
    return replace(table, is_whole=False)


def _fault_of(file: FoundFile, reason: Reason, *, is_alone: bool) -> Iterator[Reason]:
    """Yield that the file fails its slice; beside others, one without content has no rows."""
    if is_alone or reason.code is not Code.NO_CONTENT:
        yield Reason.of(Code.FAULTY_FILE, file=file.name, why=str(reason.code))


def merged_looks(looks: Sequence[Look], place: Place) -> Iterator[Look]:
    """Yield the looks; those of single files with the same columns in one folder are one."""
    alike: dict[object, list[Look]] = {}
    for look in looks:
        is_alone = len(look.group.slices) == 1 and look.group.files == 1 and not look.group.is_dated
        key = (look.group.folder, look.group.kind, look.columns) if is_alone and look.columns else id(look)
        alike.setdefault(key, []).append(look)
    for found in alike.values():
        if len(found) == 1 or (not found[0].group.folder and len(alike) > 1):
            yield from found
            continue
        group = merged_groups([each.group for each in found], place)
        yield replace(Look.of(group, place), skipped=tuple(each for look in found for each in look.skipped))
