"""Where an entity's slices lie: a folder, or a pattern of the files that belong to it.

Source: the rules of the short form, "A whole project" (`from`); it is Lakewright's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any

_MARK = re.compile(r"\{(\w+)\}|\*\*|\*|\?")


def _pattern(separators: str) -> str:
    days = "|".join(rf"\d{{4}}{sign}\d{{2}}{sign}\d{{2}}" for sign in ("", *map(re.escape, separators)))
    return rf"(?:{days})(?:T\d{{2}}(?!\d)|[T_ -]?\d{{2}}[-:.]?\d{{2}}(?:[-:.]?\d{{2}})?Z?)?"


DATE = _pattern("-_.")
"""The pattern of a date in a name, such as 2024-05-01 or 20240501, with or without a time of day."""
_DATED = re.compile(rf"(?<!\d){_pattern('-_./')}(?!\d)")
_PLACEHOLDERS = {
    "date": DATE,
    "yyyy": r"\d{4}",
    "MM": r"\d{2}",
    "dd": r"\d{2}",
    "HH": r"\d{2}",
    "mm": r"\d{2}",
}
FORMATS = {
    **{kind: kind for kind in ("parquet", "csv", "json", "avro", "orc")},
    **dict.fromkeys(("tsv", "txt"), "csv"),
    **dict.fromkeys(("jsonl", "ndjson"), "json"),
}
"""Formats by the endings of names."""

_FILE = re.compile(rf"\.({'|'.join(FORMATS)})(\.\w+)?$", re.IGNORECASE)
"""The ending of the name of a file with rows, maybe compressed."""
_GENERIC = re.compile(r"\*\*?|\*(\.\*|(\.\w+)+)?")
"""The last step of a pattern if a slice is a folder with all files of a format, such as `*.parquet`."""


@dataclass(frozen=True)
class SliceFolder:
    """The place of an entity's slices.

    A plain path is a folder: each file and each folder in it is a slice. A pattern chooses among them. There
    are four forms, and the path of one file, or of a folder with a file's ending, which is the only slice:

    - `customers/*.csv`: the slices are the files, or folders, of these names.
    - `in/customers_{date}.csv`: the same. Several entities can share the folder.
    - `orders/{date}/*.parquet`: the slices are the folders; only such files in them count.
    - `exports/{date}/customers.csv` and all others: the slices are the files that match, together by their
      date, which is the slice's name. Several entities can share the folders.

    Attributes:
        folder: The folder that is listed: a local path without scheme, or a URI, without a trailing slash.
        steps: The steps of the pattern below it; none if all that lies in the folder is a slice.
    """

    folder: str
    steps: tuple[str, ...] = ()

    @classmethod
    def of(cls, pattern: str) -> SliceFolder:
        """Return the place that a pattern means; the first step with a placeholder ends the folder."""
        steps = pattern.split("/")
        plain = len(steps) - bool(_FILE.search(steps[-1]))
        count = next((index for index, step in enumerate(steps) if _MARK.search(step)), plain)
        return cls("/".join(steps[:count]), tuple(steps[count:]))

    def __str__(self) -> str:
        """Return what the ids of its items begin with: the folder, or the pattern if folders are shared."""
        return self.pattern if self.is_shared else self.folder

    @property
    def pattern(self) -> str:
        """The folder with the pattern."""
        return "/".join((self.folder, *self.steps))

    def place(self, name: str) -> str:
        """Return the place of a slice, which identifies its item. It is a path unless folders are shared."""
        return f"{self}/{name}"

    @property
    def problem(self) -> str | None:
        """Why it is no valid pattern; None if it is one."""
        names = [mark[1] for mark in _MARK.finditer("/".join(self.steps)) if mark[1]]
        for name in names:
            if name not in _PLACEHOLDERS:
                known = ", ".join("{" + each + "}" for each in _PLACEHOLDERS)
                return f"unknown placeholder {{{name}}}; there are {known}"
            if names.count(name) > 1:
                return f"the placeholder {{{name}}} occurs twice"
        return None

    @property
    def is_shared(self) -> bool:
        """Whether a slice is chosen by the paths of files, as other files lie beside them."""
        return len(self.steps) > 2 or (bool(self.steps) and _GENERIC.fullmatch(self.steps[-1]) is None)

    @cached_property
    def _files(self) -> re.Pattern[str]:
        return re.compile("/".join(map(_as_regex, self.steps)))

    def has_entry(self, name: str) -> bool:
        """Return whether a file or folder of this name in the folder is a slice."""
        return not self.steps or re.fullmatch(_as_regex(self.steps[0]), name) is not None

    def has_file(self, path: str) -> bool:
        """Return whether a file in a folder that is a slice belongs to it, by its path in there.

        Example:
            >>> days = SliceFolder.of("/in/{date}/*.csv")
            >>> days.has_file("a.csv"), days.has_file("a.md")
            (True, False)
        """
        return len(self.steps) < 2 or re.fullmatch(_as_regex(self.steps[1]), path) is not None

    def slice_of(self, path: str) -> tuple[str, str] | None:
        """Return the slice that a file belongs to, and the folder of the slice's files, if files are chosen.

        Args:
            path: The file's path below the folder.

        Example:
            >>> SliceFolder.of("/in/{yyyy}/{MM}/{dd}/orders.csv").slice_of("2024/05/01/orders.csv")
            ('2024-05-01', '2024/05/01')
        """
        parts = path.split("/")
        if len(self.steps) == 1:
            return (parts[0], parts[0] if parts[1:] else "") if self.has_entry(parts[0]) else None
        found = self._files.fullmatch(path)
        if found is None:
            return None
        named = _named(found.groupdict())
        # Files of one date are one slice, whatever folders without a date lie between.
        sign, without = ("{", -1) if named else ("", len(parts) - 2)
        marked = (n for n, step in enumerate(self.steps[:-1]) if sign in step and _MARK.search(step))
        folders = parts[: max(marked, default=without) + 1]
        return named or "-".join(folders), "/".join(folders)


def dates_in(name: str) -> Iterator[str]:
    """Yield the dates in a name, each with its time of day if it has one, in ISO 8601.

    Example:
        >>> [next(dates_in(name), "") for name in ("x_20240501T0630.csv", "2024-05-01T06", "2024/05/01", "a")]
        ['2024-05-01T06:30:00', '2024-05-01T06:00:00', '2024-05-01', '']
    """
    for found in _DATED.finditer(name):
        digits = re.sub(r"\D", "", found[0])
        with suppress(ValueError):
            if len(digits) == len("20240501"):
                yield date.fromisoformat(digits).isoformat()
            else:
                at = datetime.fromisoformat(f"{digits[:8]}T{digits[8:]}").isoformat()
                yield f"{at}Z" if found[0].endswith("Z") else at


def _named(parts: Mapping[str, str]) -> str:
    """Return the date that placeholders found, with the time of day, in ISO 8601's order.

    Example:
        >>> _named({"dd": "01", "MM": "05", "yyyy": "2024", "HH": "06"}), _named({})
        ('2024-05-01T06', '')
    """
    day = "-".join(parts[each] for each in ("date", "yyyy", "MM", "dd") if each in parts)
    clock = "".join(parts[each] for each in ("HH", "mm") if each in parts)
    return f"{day}T{clock}" if clock else day


def _as_regex(step: str) -> str:
    """Return the regular expression of one step of a pattern; `**` stands for any number of steps."""
    texts, end = [], 0
    for mark in _MARK.finditer(step):
        texts.append(re.escape(step[end : mark.start()]))
        wild = {"**": ".*", "*": "[^/]*", "?": "[^/]"}.get(mark[0])
        texts.append(wild or f"(?P<{mark[1]}>{_PLACEHOLDERS.get(str(mark[1]), '[^/]+')})")
        end = mark.end()
    return "".join([*texts, re.escape(step[end:])])


_COMPRESSED = re.compile(r"\.(gz|bz2|zst|snappy|deflate|lz4)$")


def format_of(place: str) -> Any:
    """Return the format that the ending of a pattern names, or None."""
    ending = _COMPRESSED.sub("", place.lower()).rpartition("/")[2].rpartition(".")[2]
    if ending == "tsv":
        return {"kind": "csv", "separator": "tab"}
    return FORMATS.get(ending)
