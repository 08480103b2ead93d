"""Files grouped by their names into entities, and each entity's files into slices.

The paths of an entity's files differ by a date, a number or an id; the rest of them is the same. That is the
pattern by which the project finds them, and it also says which files are a slice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lakewright.lake.paths import join
from lakewright.profiling.places import FoundFile, Place, stem_of
from lakewright.slices.discovery import natural_key
from lakewright.slices.processing_time import iso_time
from lakewright.spec.models.slice_folder import DATE, SliceFolder

_DATE = re.compile(rf"(?<!\d){DATE}(?!\d)")
_DAY_FOLDERS = re.compile(
    r"(?<![^/])(?P<y>\w+=)?\d{4}/(?P<m>\w+=)?(?:0[1-9]|1[0-2])/(?P<d>\w+=)?[0-3]\d(?:/(?P<h>\w+=)?[0-2]\d)?(?=/)"
)
_OTHER_DATE = re.compile(r"(?<!\d)\d{1,2}[._-]\d{1,2}[._-]\d{4}(?!\d)")
_ID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])")
_PART = re.compile(r"part-[^/]*\Z")
_SIGN = re.compile(r"[{}*?]")
_ANY = "\x01"
"""Stands for a number or an id until the pattern is known."""
_MARK = re.compile(rf"\{{\w+\}}|{_ANY}")

_NULL = "__HIVE_DEFAULT_PARTITION__"
"""What the name of a folder says for null."""

_GENERAL = frozenset(
    ("", "part", "data", "export", "file", "chunk", "batch", "dump", "output", "extract", "snapshot")
)
"""Names of files that do not say what their rows are."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """The files that arrived together.

    Attributes:
        name: The slice's name.
        files: The files.
    """

    name: str
    files: tuple[FoundFile, ...]

    @property
    def date(self) -> datetime | None:
        """The date in its name, with the time of day if it has one."""
        text = iso_time(self.name)
        return datetime.fromisoformat(text).replace(tzinfo=None) if text else None


@dataclass(frozen=True, slots=True)
class Group:
    """The files of one entity.

    Attributes:
        name: What the entity may be called.
        place: Where the files are, as the entity declares it: a pattern of paths.
        kind: The format that the names show; empty if they show none.
        slices: Its slices in order.
        folder: The folder of the first file, below the place.
    """

    name: str
    place: str
    kind: str
    slices: tuple[FileSlice, ...]
    folder: str

    @property
    def is_dated(self) -> bool:
        """Whether each slice has a date in its name, and no two the same."""
        dates = [each.date for each in self.slices]
        return None not in dates and len(set(dates)) == len(dates)

    @property
    def is_folder_a_slice(self) -> bool:
        """Whether a folder has a slice's name."""
        return len(SliceFolder.of(self.place).steps) > 1

    @property
    def other_date(self) -> str | None:
        """A slice's name with a date that begins with the day or the month; None without one.

        Names with such dates do not sort by time.
        """
        return next((each.name for each in self.slices if _OTHER_DATE.search(each.name)), None)

    def folder_values(self, file: str) -> dict[str, str | None]:
        """Return the columns that the folders of a file give it: those in the slice, such as `plant=007`."""
        steps, parts = self.place.split("/"), file.split("/")
        inside = next((n for n, step in enumerate(reversed(steps)) if "{" in step), 1)
        pairs = (part.partition("=") for part in parts[len(parts) - inside : -1] if "=" in part)
        return {name: None if value == _NULL else value for name, _, value in pairs}

    @property
    def files(self) -> int:
        """The number of files."""
        return sum(len(each.files) for each in self.slices)


def group_files(place: Place) -> tuple[Group, ...]:
    """Return the files of a place as entities, by name."""
    by_form: dict[tuple[str, str], list[FoundFile]] = {}
    for file in place.files:
        folder = file.name.rpartition("/")[0]
        path = f"{folder}/{stem_of(file.name)}" if folder else stem_of(file.name)
        by_form.setdefault((_form_of(path), file.kind), []).append(file)
    return tuple(
        _group(place, form, kind, files)
        for (form, kind), files in sorted(by_form.items(), key=lambda each: each[1][0].name)
    )


def _form_of(path: str) -> str:
    r"""Return a path with marks for what differs between the files of an entity.

    Example:
        >>> _form_of("2024/05/01/orders"), _form_of("a=2024-05-01/b_2024-05-01")
        ('{yyyy}/{MM}/{dd}/orders', 'a={date}/b_\x01')
    """
    path = _SIGN.sub("?", path)
    if found := _DAY_FOLDERS.search(path):
        names = zip(("y", "m", "d", "h"), ("yyyy", "MM", "dd", "HH"), strict=True)
        count = found[0].count("/") + 1
        steps = [f"{found[key] or ''}{{{mark}}}" for key, mark in list(names)[:count]]
        path = f"{path[: found.start()]}{'/'.join(steps)}{path[found.end() :]}"
    else:
        first = next((match for match in _DATE.finditer(path) if iso_time(match[0])), None)
        if first is not None:
            path = f"{path[: first.start()]}{{date}}{path[first.end() :]}"
    path = _DATE.sub(_ANY, path)
    return _ID.sub(_ANY, _PART.sub(f"part-{_ANY}", path))


def _group(place: Place, form: str, kind: str, files: Sequence[FoundFile]) -> Group:
    own = {file.name for file in files}
    others = [file.name for file in place.files if file.name not in own]
    ending = _common_ending(own)
    forms = (re.sub(r"\*+", "*", f"{each}{ending}") for each in _patterns(form, own))
    patterns = [SliceFolder.of(join(place.root, each)) for each in forms]
    fitting = [each for each in patterns if all(_slice_of(each, place, name) for name in own)]
    free = (each for each in fitting if not any(_reaches(each, place, name) for name in others))
    chosen = next(free, fitting[-1])  # the last one is the narrowest
    folder_form, _, stem_form = form.rpartition("/")
    return Group(
        _name_of(place.root, folder_form, stem_form),
        chosen.pattern,
        kind,
        tuple(_slices(files, place, chosen)),
        files[0].name.rpartition("/")[0],
    )


def _patterns(form: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the patterns of a form without endings, the simplest first, the narrowest last."""
    folder, slash, stem = form.rpartition("/")
    folder = folder.replace(_ANY, "*")
    if not _plain(_MARK.sub("_", stem).removeprefix("part")):
        yield f"{folder}{slash}*"
    if not _MARK.search(form):
        yield form
        # Without an ending, a path without a mark is that of a folder.
        yield f"{folder}{slash}{stem}*"
        yield f"{folder}{slash}{stem[:-1]}?"
        return
    yield f"{folder}{slash}{re.sub(rf'{_ANY}+', '*', stem)}"
    lengths = {len(stem_of(name)) - len(stem.replace(_ANY, "")) for name in names}
    if stem.count(_ANY) == 1 and len(lengths) == 1 and "{date}" not in stem:
        yield f"{folder}{slash}{stem.replace(_ANY, '?' * lengths.pop())}"


def _slice_of(pattern: SliceFolder, place: Place, name: str) -> str | None:
    """Return the name of the slice that a file belongs to, by its path below the place; None for no slice."""
    path = join(place.root, name).removeprefix(f"{pattern.folder}/")
    entry, _, inside = path.partition("/")
    if not pattern.steps:
        return None
    if pattern.is_shared:
        found = None if inside and len(pattern.steps) == 1 else pattern.slice_of(path)
        return None if found is None else found[0]
    is_slice = pattern.has_entry(entry) and bool(inside) == (len(pattern.steps) > 1)
    return entry if is_slice and (not inside or pattern.has_file(inside)) else None


def _reaches(pattern: SliceFolder, place: Place, name: str) -> bool:
    """Return whether another entity's file is below the folder of a pattern, or chosen by it."""
    is_below = join(place.root, name).startswith(f"{pattern.folder}/")
    return is_below and (not pattern.is_shared or _slice_of(pattern, place, name) is not None)


def _slices(files: Iterable[FoundFile], place: Place, pattern: SliceFolder) -> Iterator[FileSlice]:
    by_name: dict[str, list[FoundFile]] = {}
    for file in sorted(files, key=lambda each: natural_key(each.name)):
        by_name.setdefault(_slice_of(pattern, place, file.name) or file.name, []).append(file)
    for name in sorted(by_name, key=natural_key):
        yield FileSlice(name, tuple(by_name[name]))


def _name_of(root: str, folder_form: str, stem_form: str) -> str:
    """Return the name of the file without its date; that of the nearest folder if that says nothing."""
    parts = [*reversed(folder_form.split("/")), root.rpartition("/")[2]]
    for part in (stem_form, *parts):
        literal = _plain(_MARK.sub("_", part.partition("=")[2] if "=" in part else part))
        if literal not in _GENERAL and not literal.isdecimal():
            return literal if not literal[0].isdecimal() else f"t_{literal}"
    return "files"


def _plain(part: str) -> str:
    """Return a part of a path as a name for SQL.

    Example:
        >>> _plain("Daily Orders (EU)-")
        'daily_orders_eu'
    """
    return re.sub(r"[\W_]+", "_", part).strip("_").lower()


def _common_ending(names: Iterable[str]) -> str:
    """Return the endings that all names have, with a sign for those that only some have.

    Example:
        >>> _common_ending(["a.csv", "b.csv"]), _common_ending(["a.snappy.parquet", "b.parquet"])
        ('.csv', '*.parquet')
    """
    endings = {name.rpartition("/")[2][len(stem_of(name)) :] for name in names}
    if len(endings) == 1:
        return endings.pop()
    shortest = min(endings, key=len)
    return f"*{shortest}" if all(ending.endswith(shortest) for ending in endings) else ".*"


def merged_groups(groups: Sequence[Group], place: Place) -> Group:
    """Return one group of the files of several, all in one folder, whose names say nothing."""
    first = groups[0]
    files = [file for group in groups for each in group.slices for file in each.files]
    ending = _common_ending(file.name for file in files)
    steps = (first.folder, "*" + ending.removeprefix("*"))
    pattern = SliceFolder.of(join(place.root, *filter(None, steps)))
    return replace(
        first,
        name=_name_of(place.root, first.folder, ""),
        place=pattern.pattern,
        slices=tuple(_slices(files, place, pattern)),
    )
