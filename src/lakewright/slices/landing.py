"""Landing of a frame as a slice of an entity: written beside its place, then renamed to it.

A reader of bronze finds either no slice of the name or the whole one. The rules are Lakewright's own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from lakewright.errors import TargetError, UsageError
from lakewright.lake.cluster import check_written
from lakewright.lake.files import Files, files_at, replace_folder
from lakewright.lake.paths import join, local_path, parent
from lakewright.lake.spark_errors import translated_failures
from lakewright.notebook import html_table
from lakewright.reader.source import WHOLE_TIMES, form_of_slices
from lakewright.schema.conversion import convert
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql
from lakewright.slices.discovery import SUCCESS, UNFINISHED, find_slice, item_id, list_slices
from lakewright.spark.engine import measured
from lakewright.spec.models.column import normal_name
from lakewright.spec.models.entity import Entity
from lakewright.spec.words import first_of
from lakewright.transform.storable_columns import binary_column, column_with, without_typeless

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.slice_folder import SliceFolder


LONGEST_NAME = 255
"""Bytes that a name may have on the usual file systems."""

_OPTIONS: Mapping[str, Mapping[str, str]] = {
    # By default Spark trims texts in CSV, and leaves out the columns of JSON that are null.
    "csv": {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"},
    "json": {"ignoreNullFields": "false"},
}


_TYPED = frozenset({"csv", "orc"})
"""Formats whose columns have types of values, so that one without values is one of texts."""

_FRACTIONS = frozenset(("float", "double", "decimal"))
_WHOLE = frozenset(("tinyint", "smallint", "int", "bigint"))


@dataclass(frozen=True, slots=True)
class LandedSlice:
    """A slice that was landed in bronze.

    Attributes:
        entity: Name of the entity.
        name: Name of the slice.
        path: The folder of its files.
        item_id: Id of its item in the manifest.
        files: Number of files.
        size: Total bytes of the files.
        is_replaced: Whether it replaced a slice of the same name.
    """

    entity: str
    name: str
    path: str
    item_id: str
    files: int
    size: int
    is_replaced: bool = False

    def _repr_html_(self) -> str:
        """Return the slice as a notebook shows it."""
        done = "replaced" if self.is_replaced else "landed"
        columns = ("entity", "slice", "files", "bytes", "folder")
        return html_table(
            f"Slice {done}", columns, [(self.entity, self.name, self.files, self.size, self.path)]
        )


def check_slice_name(name: str) -> None:
    """Raise an error unless a text can be the name of a slice on any file system.

    Raises:
        UsageError: It is empty or too long, begins with `_` or `.`, ends as an unfinished file, or has a
            character that names can't have.

    Example:
        >>> check_slice_name("2024-05-01.json")
    """
    problem = None
    if not isinstance(name, str):
        problem = f"is of the type {type(name).__name__}, not text"
    elif not name.strip() or name != name.strip():
        problem = "is empty, or begins or ends with a space"
    elif name.startswith(("_", ".")):
        problem = f"begins with {name[0]}, which hides it"
    elif name.lower().endswith(UNFINISHED):
        problem = "ends as a file that is still being written"
    elif any(character in "/\\:" or not character.isprintable() for character in name):
        problem = "has a slash, a colon or a control character"
    elif len(name.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
        problem = f"has more than {LONGEST_NAME} bytes"
    if problem is not None:
        raise UsageError(
            f"{name!r} can't be the name of a slice: it {problem}",
            remedy="Slices are processed in the order of their names; a date such as 2024-05-01 is usual.",
        )


def land_slice(
    lake: Lake, entity: Entity, frame: DataFrame, name: str, *, replace: bool = False
) -> LandedSlice:
    """Write a frame to an entity's bronze folder as the slice of a name, and return it.

    It is a folder of files in the entity's format. It has the mark `_SUCCESS` if other folders in bronze have
    it, because those without it would not count as complete.

    Raises:
        UsageError: The name is invalid, a slice has it already and `replace` is not given, the format can't
            hold the frame's columns, or its files would be empty.
    """
    check_slice_name(name)
    _check_format(entity)
    slices = entity.places(lake.settings).slices
    _check_is_slice(entity, name, slices)
    bronze, place = slices.folder, slices.place(name)
    files = files_at(bronze, lake)
    if files.exists(place) and not replace:
        raise _exists_error(entity, name, bronze)
    staged = join(bronze, f".{uuid4().hex}.landing")
    check_written(lake, staged, f"bronze of {entity.called}")
    files.make_folder(bronze)
    try:
        _write(frame, entity, staged, is_marked=_is_marked(lake, slices))
        _check_content(files, entity, staged, name)
        is_replaced = _publish(files, staged, place, entity, replace=replace)
    finally:
        files.remove(staged)
    found = find_slice(slices, name, lake)
    count, size = (0, 0) if found is None else (len(found.files), found.size)
    return LandedSlice(entity.called, name, place, item_id(place), count, size, is_replaced)


def _check_format(entity: Entity) -> None:
    """Raise an error if files in the entity's format can't hold every text."""
    form = form_of_slices(entity.settings.slice_format)
    problem = None
    if not form.is_utf8:
        problem = f"encoded in {form.encoding}, which lacks characters that texts may have"
    elif form.kind == "csv" and not form.quote:
        problem = "csv without quotes, which can't hold texts with a separator or a line break"
    if problem is not None:
        raise UsageError(
            f"slices of {entity.called} are {problem}, so that frames can't be landed",
            remedy="Write the files yourself, or change the `format` of the entity.",
        )


def _write(frame: DataFrame, entity: Entity, staged: str, *, is_marked: bool) -> None:
    from pyspark.errors import AnalysisException

    form = form_of_slices(entity.settings.slice_format)
    mark = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": str(is_marked).lower()}
    # One text for an instant, whatever the session that it comes from. It is in UTC, because the offsets of
    # zones had seconds before about 1900, which the format has not.
    times = {"timeZone": "UTC", **WHOLE_TIMES} if form.kind in _OPTIONS else {}
    options = {**mark, **times, **_OPTIONS.get(form.kind, {}), **form.options}
    what = f"the frame can't be landed as {form.kind} for {entity.called}"
    if form.kind in _OPTIONS and (name := binary_column(frame)) is not None:
        raise UsageError(
            f"{what}: column {name!r} has binary values, which files of text do not hold",
            remedy="Land them as text, such as `base64(…)` gives it, or in another format, such as parquet.",
        )
    if (name := _unusable_name(frame, entity)) is not None:
        raise UsageError(
            f"{what}: the column name {name!r} has characters that are lost in it, or in the silver table",
            remedy="Rename the column.",
        )
    if (name := column_with(frame, "interval")) is not None:
        raise UsageError(
            f"{what}: column {name!r} has intervals, which a table cannot hold",
            remedy="Land them as numbers, such as seconds.",
        )
    frame = _with_whole_numbers(frame, entity) if form.kind == "csv" else frame
    frame = without_typeless(frame) if form.kind in _TYPED else frame
    odd = OddNumbers.of(frame, entity) if form.kind == "json" else None
    try:
        with translated_failures("while the frame was landed"):
            try:
                frame = frame if odd is None else odd.observed
                frame.write.format(form.kind).options(**options).save(_uri(staged))
            except AnalysisException as error:
                if error.getCondition() == "INVALID_COLUMN_NAME_AS_PATH":
                    raise _odd_names(what, form.kind, frame.columns) from error
                raise UsageError(
                    f"{what}: {str(error).strip().partition(chr(10))[0]}",
                    remedy="Cast or drop the columns that it names, or give the entity another `format`.",
                ) from error
    except TargetError as error:
        is_misfit = "column" in error.details
        correct = "Correct the column, or declare another `datatype`. Nothing was written."
        remedy = correct if is_misfit else error.remedy
        raise UsageError(f"{what}: {error.message}", remedy=remedy) from error.__cause__
    if odd is not None:
        odd.warn(entity)


def _odd_names(what: str, kind: str, names: Iterable[str]) -> UsageError:
    """Return the error of names of columns that a format can't have."""
    odd = [repr(name) for name in names if not (name.isascii() and name.isidentifier())]
    return UsageError(
        f"{what}: {kind} can't have the column name {first_of(odd, 3)}",
        remedy="Rename it: letters, digits and _, with no digit in front.",
    )


def _unusable_name(frame: DataFrame, entity: Entity) -> str | None:
    """Return a column's name of which no character can be kept, or that ORC would cut at a backtick."""
    declared = {column.source.lower() for column in entity.columns}
    is_cut = entity.settings.slice_format.kind == "orc"
    for name in frame.columns:
        if (is_cut and "`" in name) or (name.lower() not in declared and not normal_name(name)):
            return name
    return None


def _with_whole_numbers(frame: DataFrame, entity: Entity) -> DataFrame:
    """Return a frame with whole numbers in columns that the entity declares so; CSV would have 3.0 for 3.

    A column of whole numbers with missing values is one of fractions in pandas. A true fraction fails the
    query.
    """
    from pyspark.sql import functions

    declared = {column.source.lower(): column.type for column in entity.columns if not column.is_calculated}
    whole = {}
    for field in frame.schema.fields:
        kind = declared.get(field.name.lower())
        is_fraction = field.dataType.typeName().partition("(")[0] in _FRACTIONS
        if kind is not None and kind.ddl in _WHOLE and is_fraction:
            value = name_sql(field.name)
            whole[field.name] = functions.expr(
                convert(value, type_of(field.dataType), kind, column=field.name).strict
            )
    return frame.withColumns(whole) if whole else frame


def _check_content(files: Files, entity: Entity, staged: str, name: str) -> None:
    """Raise an error if the written files are empty: the slice would not be found, or fail."""
    if not sum(file.size for file in files.listed(staged)):
        raise UsageError(
            f"the frame for the slice {name} of {entity.called} has no rows, so its "
            f"{entity.settings.slice_format.kind} files would be empty",
            remedy="Land nothing, or use the format parquet, in which a slice without rows has columns.",
        )


def _is_marked(lake: Lake, bronze: SliceFolder) -> bool:
    """Return whether a folder in bronze has the mark `_SUCCESS`, so that others need it too."""
    return any(SUCCESS in slice_.marks for slice_ in list_slices(bronze, lake))


def _check_is_slice(entity: Entity, name: str, slices: SliceFolder) -> None:
    """Raise `UsageError` if the entity would not read a folder of this name as a slice."""
    if slices.is_shared or not slices.has_entry(name):
        raise UsageError(
            f"{entity.called} reads {slices.pattern}, to which a folder {name} does not belong",
            remedy="Choose a name that the pattern has, or put the files there yourself.",
        )


def _publish(files: Files, staged: str, place: str, entity: Entity, *, replace: bool) -> bool:
    """Rename the staged folder to its place; return whether it replaced another one."""
    if replace and files.exists(place):
        replace_folder(files, staged, place)
        return True
    try:
        files.rename(staged, place)
    except OSError as error:
        if files.exists(place):  # another landing of this name was faster
            raise _exists_error(entity, *reversed(parent(place))) from error
        raise
    return False


def _exists_error(entity: Entity, name: str, bronze: str) -> UsageError:
    return UsageError(
        f"{entity.called} has a slice {name} in {bronze} already",
        remedy="Choose another name, or give replace=True; a slice that was processed must then be requeued.",
        details={"slice": name, "bronze": bronze},
    )


def _uri(path: str) -> str:
    local = local_path(path)
    return path if local is None else f"file://{Path(local).absolute()}"


log = logging.getLogger(__name__)

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class OddNumbers:
    """Looks for such values in columns of which the entity declares no type, while the frame is written.

    Attributes:
        observed: The frame that is to be written.
        columns: The columns.
        observation: What is measured of them.
    """

    observed: DataFrame
    columns: tuple[str, ...]
    observation: Observation

    @classmethod
    def of(cls, frame: DataFrame, entity: Entity) -> OddNumbers | None:
        """Return the columns of a frame that may have such values; None if there are none."""
        from pyspark.sql import Observation, functions

        declared = {column.source.lower() for column in entity.columns if column.type is not None}
        columns = tuple(
            field.name
            for field in frame.schema.fields
            if field.dataType.typeName() in ("float", "double") and field.name.lower() not in declared
        )
        if not columns:
            return None
        observation, values = Observation(), [functions.col(name_sql(name)) for name in columns]
        found = [
            functions.max(functions.isnan(value) | (functions.abs(value) == float("inf"))).alias(str(number))
            for number, value in enumerate(values)
        ]
        return cls(frame.observe(observation, *found), columns, observation)

    def warn(self, entity: Entity) -> None:
        """Warn of the columns that have such values, once they are written."""
        found = measured(self.observation) or {}
        names = [repr(name) for number, name in enumerate(self.columns) if found.get(str(number))]
        if names:
            log.warning(
                "%s: %s %s NaN or infinities, which JSON has as texts only: declare the `datatype` double, "
                "or the column is one of texts in silver, too",
                *(entity.called, first_of(names, _MOST_NAMED), "has" if len(names) == 1 else "have"),
            )
