"""CSV files of a relation: the options to read and write them, and the columns of each.

Spark gives all files the columns of one of them, or the declared ones, by position. A file whose columns are
in another order would be read with wrong values, and further columns would be lost.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import io
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from lakewright.lake.file_probe import is_near, quoted_line_ends, scan_csv, undecodable_line
from lakewright.spec.models.fields import Field, parse_type

__all__ = [
    "CsvForm",
    "CsvGroup",
    "columns_of_file",
    "first_lines",
    "grouped",
    "other_separator",
    "reading_options",
    "writing_options",
]

FIRST_BYTES = 1 << 16
"""How much of a file is read to find its first line. A longer line leaves the file's columns unknown."""

_AT_ONCE = 16
"""Files whose beginning is read at once: an object store takes tens of milliseconds for each."""

_TEXT = parse_type("string")

_SEPARATORS = (";", "\t", "|", ",")

_QUOTES = {"escape": '"', "unescapedQuoteHandling": "RAISE_ERROR"}
"""Quotes inside quotes are doubled (RFC 4180, section 2); Spark's default is a backslash before them."""

_SPACES = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
"""Spark's default leaves out spaces around values when it writes, and keeps them when it reads."""


def writing_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options to write CSV files with, so that reading gives the same values.

    Empty text alone is read as null.
    """
    return _with_defaults(options, {"escape": '"', **_SPACES})


def reading_options(options: Mapping[str, str], paths: Sequence[str]) -> dict[str, str]:
    """Return the options to read CSV files with: fields may hold line breaks and doubled quotes.

    Args:
        options: Spark's options that the project declares; they win.
        paths: The files.

    Raises:
        ValueError: A quote is not closed, or an unescaped one is inside quotes; or a file has bytes that its
            encoding does not have.
    """
    given = {name.lower() for name in options}
    own = dict(options)
    if not given & {"quote", "escape", "unescapedquotehandling"}:
        own = _with_defaults(own, _QUOTES)
    form = CsvForm.of(options)
    has_breaks_told = bool(given & {"multiline", "linesep"})
    is_plain = form is not None and not form.is_wide and all(map(is_near, paths))
    if form is None or not is_plain or has_breaks_told or given & {"quote", "escape"}:
        if form is not None:
            _check_decodes(paths, form.encoding)
        return own if has_breaks_told else {**own, "multiLine": "true"}
    return {**own, **_line_break_options(paths, form)}


def _check_decodes(paths: Sequence[str], encoding: str) -> None:
    """Raise `ValueError` if a file has bytes that its encoding does not have; Spark would replace them."""
    for path in filter(is_near, paths if _is_known(encoding) else ()):
        line = undecodable_line(Path(path), encoding)
        if line is not None:
            raise _undecodable(path, line, encoding)


def _is_known(encoding: str) -> bool:
    try:
        codecs.lookup(encoding)
    except LookupError:
        return False  # only Java knows it
    return True


def _undecodable(path: str, line: int, encoding: str) -> ValueError:
    return ValueError(f"{path}, line {line}: there are bytes that are not {encoding}")


def _line_break_options(paths: Sequence[str], form: CsvForm) -> dict[str, str]:
    """Return the options for fields with line breaks; none if there are no such fields.

    Spark then reads a large file in several tasks. Each file is read once, and once more if it may have
    fields with line breaks.

    Raises:
        ValueError: A quote is not closed, or a file has bytes that its encoding does not have.
    """
    ends: set[str] = set()
    is_unknown = False
    # Every byte is a character of Latin-1.
    encoding = form.encoding if _is_known(form.encoding) else "latin-1"
    for path in paths:
        scan = scan_csv(Path(path), encoding)
        if scan is not None and scan.undecodable is not None:
            raise _undecodable(path, scan.undecodable, encoding)
        if scan is None or is_unknown or not scan.may_break:
            is_unknown = is_unknown or scan is None
            continue
        try:
            own = quoted_line_ends(Path(path), form.separator, has_been_scanned=True)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        is_unknown = own is None
        ends |= own or set()
    if not ends and not is_unknown:
        return {}
    # If Spark knows the line ending, it keeps other line breaks inside quotes.
    is_one = len(ends) == 1 and not is_unknown
    return {"multiLine": "true", **({"lineSep": ends.pop()} if is_one else {})}


def _with_defaults(options: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    given = {name.lower() for name in options}
    return {**options, **{name: value for name, value in defaults.items() if name.lower() not in given}}


@dataclass(frozen=True, slots=True)
class CsvGroup:
    """CSV files that have the same columns.

    Attributes:
        columns: The columns to read them with; None for those that Spark finds, or that are declared.
        paths: The files.
        renamed: The first name in the header of a column that is read by position, and the declared name;
            None if all names are declared.
        separator: What probably separates the columns of a header that has only one; None otherwise.
    """

    columns: tuple[Field, ...] | None
    paths: list[str]
    renamed: tuple[str, str] | None = None
    separator: str | None = None


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How the lines of CSV files are written, from Spark's options.

    Attributes:
        has_header: Whether the first line has the names of the columns.
        comment: The character that begins a line which Spark skips; empty if there is none.
    """

    has_header: bool
    separator: str = ","
    quote: str = '"'
    encoding: str = "utf-8"
    comment: str = ""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> CsvForm | None:
        """Return the form that options tell; None for one that only Spark reads."""
        given = {name.lower(): value for name, value in options.items()}
        form = cls(
            has_header=given.get("header", "false").strip().lower() == "true",
            separator=given.get("sep", given.get("delimiter", ",")).replace("\\t", "\t"),
            quote=given.get("quote", '"'),
            encoding=given.get("encoding", given.get("charset", "utf-8")),
            comment=given.get("comment", ""),
        )
        is_known = len(form.separator) == 1 and len(form.quote) <= 1 and "linesep" not in given
        return form if is_known else None

    @property
    def is_wide(self) -> bool:
        """Whether a character takes several bytes, so that line breaks cannot be found among the bytes."""
        return self.encoding.lower().replace("-", "").startswith(("utf16", "utf32"))

    def first_line(self, begin: bytes, name: str) -> tuple[str, ...] | None:
        """Return the values of the first line of a file; None if only Spark can tell.

        Args:
            begin: The first bytes of the file, `FIRST_BYTES` at most.
            name: Its name, whose ending tells how it is compressed.
        """
        try:
            plain = _plain(begin, name)
            if plain is None:
                return None
            text = plain.decode(self.encoding, errors="replace").removeprefix("\ufeff")
        except (LookupError, OSError, EOFError, zlib.error):
            return None  # Spark reports the error when it reads the file
        lines = [line for line in text.splitlines(keepends=True) if self._counts(line)]
        if not lines or (len(lines) == 1 and len(begin) == FIRST_BYTES):
            return None
        rows = csv.reader(
            io.StringIO("".join(lines)),
            delimiter=self.separator,
            quotechar=self.quote or None,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
        )
        try:
            return tuple(value.strip() for value in next(rows))
        except (csv.Error, StopIteration):
            return None

    def _counts(self, line: str) -> bool:
        return bool(line.strip()) and not (self.comment and line.startswith(self.comment))


def _plain(begin: bytes, name: str) -> bytes | None:
    """Return the beginning of a file, decompressed; None for a compression that Python does not have."""
    ending = name.rpartition(".")[2]
    if ending == "gz":
        return zlib.decompressobj(wbits=31).decompress(begin, FIRST_BYTES)
    if ending == "bz2":
        return bz2.BZ2Decompressor().decompress(begin, FIRST_BYTES)
    return None if ending in {"zst", "zstd", "snappy", "lz4", "deflate", "lzo", "xz"} else begin


def first_lines(
    paths: Sequence[str], form: CsvForm, read: Callable[[str, int], bytes]
) -> list[tuple[str, ...] | None]:
    """Return the values of the first line of each file, or None where only Spark can tell.

    Args:
        paths: The files.
        form: How their lines are written.
        read: Returns the first bytes of a file.
    """

    def line(path: str) -> tuple[str, ...] | None:
        return form.first_line(read(path, FIRST_BYTES), path)

    with ThreadPoolExecutor(_AT_ONCE) as workers:
        return list(workers.map(line, paths))


def columns_of_file(line: Sequence[str], declared: Sequence[Field], *, has_header: bool) -> tuple[Field, ...]:
    """Return the columns to read a file with, in the order of its fields.

    Where a header names a declared column at another place than the declaration, columns are matched by name.
    Otherwise the place counts, as Flowman has it, so that a declaration may rename columns. Fields that are
    not declared are texts that nobody selects.

    Args:
        line: The values of its first line.
        declared: The declared columns.
        has_header: Whether the line has the names of the columns.

    Example:
        >>> declared = [Field(name="id", type=_TEXT), Field(name="price", type=_TEXT)]
        >>> [each.name for each in columns_of_file(["price", "more", "id"], declared, has_header=True)]
        ['price', '_c1', 'id']
        >>> [each.name for each in columns_of_file(["ID", "Preis"], declared, has_header=True)]
        ['id', 'price']
    """
    names = _declared_names(line, declared) if has_header else []
    places = {field.name.lower(): place for place, field in enumerate(declared)}
    # Where a header has a name twice, the first of them is meant.
    if all(
        places.get(name, place) == place for place, name in enumerate(names) if names.index(name) == place
    ):
        return (*declared[: len(line)], *map(_other, range(len(declared), len(line))))
    left = {field.name.lower(): field for field in declared}
    return tuple(left.pop(name) if name in left else _other(place) for place, name in enumerate(names))


def _declared_names(line: Sequence[str], declared: Sequence[Field]) -> list[str]:
    """Return the names of a header in lower case; a column's former name counts as its name."""
    present = {field.name.lower() for field in declared}
    former = {field.renamed_from.lower(): field.name.lower() for field in declared if field.renamed_from}
    return [name if name in present else former.get(name, name) for name in map(str.lower, line)]


def _renamed(
    line: Sequence[str], columns: Sequence[Field], declared: Sequence[Field]
) -> tuple[str, str] | None:
    """Return the first name of a header that differs from that of the column which is read, and that one."""
    wanted = {field.name for field in declared}
    for own, name, field in zip(line, _declared_names(line, declared), columns, strict=True):
        if field.name in wanted and name != field.name.lower():
            return own, field.name
    return None


def _other(place: int) -> Field:
    return Field(name=f"_c{place}", type=_TEXT)


def grouped(
    paths: Sequence[str],
    lines: Sequence[tuple[str, ...] | None],
    declared: Sequence[Field] | None,
    form: CsvForm,
) -> list[CsvGroup]:
    """Return the files that can be read together, in groups; files that only Spark can read are one.

    Args:
        paths: The files.
        lines: The values of their first lines, as `first_lines` returns them.
        declared: The columns that are declared, without those of partitions; None if there are none.
        form: How their lines are written.

    Raises:
        ValueError: A header has a name twice, and no declaration says which column is meant.
    """
    groups: dict[object, CsvGroup] = {}
    for path, line in zip(paths, lines, strict=True):
        columns, renamed, separator = None, None, None
        if line is not None and form.has_header:
            separator = other_separator(line, form.separator)
            if declared is None and (doubled := _doubled(line)):
                raise ValueError(f"the header of {path} has the column {doubled!r} twice")
        if line is not None and declared is not None:
            columns = columns_of_file(line, declared, has_header=form.has_header)
            renamed = _renamed(line, columns, declared) if form.has_header else None
        key = line if columns is None else tuple(each.name for each in columns)
        group = groups.get(key, CsvGroup(columns, []))
        groups[key] = replace(
            group,
            paths=[*group.paths, path],
            renamed=group.renamed or renamed,
            separator=group.separator or separator,
        )
    return list(groups.values())


def _doubled(line: Sequence[str]) -> str | None:
    """Return the first name that a header has twice, in any case, as Spark compares names; None if none."""
    seen: set[str] = set()
    for name in filter(None, line):  # Spark numbers columns without a name
        if name.lower() in seen:
            return name
        seen.add(name.lower())
    return None


def other_separator(line: Sequence[str], separator: str) -> str | None:
    """Return what probably separates the columns of a header that has only one; None if it has several.

    Example:
        >>> [other_separator(line, ",") for line in (["id;name"], ["id", "a;b"], ["id"])]
        [';', None, None]
    """
    found = [sign for sign in _SEPARATORS if sign in line[0]] if len(line) == 1 else []
    return next((sign for sign in found if sign != separator), None)
