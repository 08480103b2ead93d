"""CSV files as raw texts: each file by its own columns and line ends, united by name.

Files that can be read in the same way are read together. Files without records have no rows; beside others,
neither has one with a header alone.

Source: the rules of reading, "Two steps" and "Places".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.lake.file_probe import is_near
from lakewright.lake.files import files_at
from lakewright.lake.paths import local_path
from lakewright.reader.far import Begin, far_lines
from lakewright.reader.fault_errors import error_of
from lakewright.reader.faults import FileFault
from lakewright.reader.form import Form
from lakewright.reader.lines import Lines, scan
from lakewright.reader.source import Source
from lakewright.schema.names import shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lakewright.lake.lake import Lake

__all__ = [
    "CsvGroup",
    "groups_of",
    "names_of",
    "names_of_header",
    "read_csv",
    "read_group",
    "union_of",
]


@dataclass(frozen=True, slots=True)
class CsvGroup:
    """CSV files that are read together.

    Attributes:
        first: The values of their first record if it is a header, otherwise as many texts as it has values.
        paths: The files.
        end: What ends a line, where Spark must be told.
        has_breaks: Whether fields may hold what ends a line, so that a file cannot be read in parts.
    """

    first: tuple[str, ...]
    paths: tuple[str, ...]
    end: str | None = None
    has_breaks: bool = False

    @property
    def options(self) -> dict[str, str]:
        """Options of Spark's reader for these files."""
        found = {"multiLine": "true", "unescapedQuoteHandling": "RAISE_ERROR"} if self.has_breaks else {}
        return found if self.end is None else {**found, "lineSep": self.end}


def groups_of(session: SparkSession, paths: Sequence[str], form: Form, begin: Begin) -> list[CsvGroup]:
    """Return the files with records, in groups that can be read together.

    Args:
        session: A session, for files that Python cannot read.
        paths: The files.
        form: How they are written.
        begin: Returns the first bytes of a file.

    Raises:
        FileFault: A file can't be read as it is declared to be written.
    """
    found = _lines(session, paths, form, begin)
    filled = {path: lines for path, lines in found.items() if lines.first}
    if form.header and not all(lines.is_alone for lines in filled.values()):
        filled = {path: lines for path, lines in filled.items() if not lines.is_alone}
    groups: dict[tuple[tuple[str, ...], str | None, bool], list[str]] = {}
    for path, lines in filled.items():
        first = lines.first if form.header else ("",) * len(lines.first)
        groups.setdefault((first, lines.end, lines.has_breaks or not form.has_plain_bytes), []).append(path)
    return [CsvGroup(first, tuple(each), end, breaks) for (first, end, breaks), each in groups.items()]


def _lines(session: SparkSession, paths: Sequence[str], form: Form, begin: Begin) -> dict[str, Lines]:
    near: dict[str, Lines] = {}
    for path in filter(is_near, paths):
        found = scan(local_path(path) or Path(path), form)
        if found is not None:
            near[path] = found
    far = far_lines(session, [path for path in paths if path not in near], form, begin)
    return {path: near[path] if path in near else far[path] for path in paths}


def names_of(group: CsvGroup, form: Form, *, is_numbered: bool = False) -> tuple[str, ...]:
    """Return the names of the columns of files; those without a header are `_c0`, `_c1`, ….

    Args:
        group: The files.
        form: How they are written.
        is_numbered: Whether a column without a name in a header is called by its number, too.

    Raises:
        FileFault: A header has a name twice, in any case, or none for a column.
    """
    if form.header:
        return names_of_header(group.first, form, group.paths[0], is_numbered=is_numbered)
    return tuple(f"_c{place}" for place in range(len(group.first)))


def names_of_header(
    values: Sequence[str], form: Form, path: str, *, is_numbered: bool = False
) -> tuple[str, ...]:
    """Return the names of the columns that a header names.

    Args:
        values: Its values.
        form: How the file is written.
        path: The file.
        is_numbered: Whether a column without a name is called by its number, such as `_c2`.

    Raises:
        FileFault: It has a name twice, in any case, or none for a column.
    """
    names: list[str] = []
    taken: set[str] = set()
    for place, own in enumerate(values):
        name = own.strip(" \t") if form.trim_names else own
        if not name.strip() and not is_numbered:
            raise FileFault("nameless", path, place=str(place + 1))
        if name and name.lower() in taken:
            raise FileFault("doubled_name", path, name=shown(name))
        taken.add(name.lower())
        names.append(name or f"_c{place}")
    return tuple(names)


def read_group(
    session: SparkSession,
    group: CsvGroup,
    form: Form,
    schema: StructType | str | None,
    *,
    options: Mapping[str, str],
    places: Sequence[str] | None = None,
) -> DataFrame:
    """Return the rows of files that are read together, lazily.

    Args:
        session: A session.
        group: The files.
        form: How they are written.
        schema: Their columns in their order; None if Spark is to infer their types.
        options: Further options of Spark's reader. Those that the project declares win over all.
        places: What to read instead of each file, such as their folder.
    """
    if not form.is_of_spark:
        session.conf.set("spark.sql.legacy.javaCharsets", "true")
    own = {
        **form.options,
        **group.options,
        # With column pruning, a query over a few columns takes rows with too many fields for right ones.
        "columnPruning": "false",
        "__globPaths__": "false",
        **options,
        **form.given,
    }
    reader = session.read.format("csv").options(**own)
    reader = reader if schema is None else reader.schema(schema)
    return reader.load(list(places or group.paths))


def read_csv(
    lake: Lake, session: SparkSession, source: Source, form: Form, *, corrupt: str | None = None
) -> DataFrame:
    """Return the rows of CSV files with all values as texts; a column that a file lacks is null there.

    Args:
        lake: The lake.
        session: A session.
        source: The files.
        form: How they are written.
        corrupt: Column for the text of a record with too many or too few fields, whose other columns don't
            count. Without it, such a record fails the query.

    Raises:
        LakewrightError: A file can't be read as it is declared to be written, or has a name twice in its
            header, or none for a column.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    mode = {"mode": "FAILFAST"}
    if corrupt is not None:
        mode = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": corrupt}
    frames = []
    try:
        groups = groups_of(session, source.paths, form, files_at(source.place, lake).begin)
        for group in groups:
            names = [*names_of(group, form), *(() if corrupt is None else (corrupt,))]
            schema = StructType([StructField(name, StringType()) for name in names])
            places = source.places if len(groups) == 1 else None
            options = {**mode, **source.options}
            frames.append(read_group(session, group, form, schema, options=options, places=places))
    except FileFault as fault:
        raise error_of(source, fault, form) from fault
    return union_of(frames) if frames else session.createDataFrame([], StructType([]))


def union_of(frames: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of all frames; columns are matched by name, and null where a frame lacks them."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
