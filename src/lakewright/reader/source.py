"""What is read together: the files of a slice or of a relation, how they are written, and their faults.

Source: RFC 4180, section 2 (quotes inside quotes are doubled).
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.errors import LakewrightError, SchemaDriftError, SliceError, TargetError
from lakewright.lake.file_probe import DAMAGED, PROBE, opened
from lakewright.lake.frames import empty_frame
from lakewright.lake.paths import FileEntry, join, local_path
from lakewright.manifest.payload import MAY_SKIP
from lakewright.schema.types import StructField, Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lakewright.lake.files import Files
    from lakewright.spec.models.slice_format import SliceFormat


Begin = Callable[[str, int], bytes]
"""Returns the first bytes of a file, by its path and their number."""

TEXTS = ("csv", "json")
"""Kinds of files that consist of text, with an encoding."""

_AT_ONCE = 32
"""Files whose beginning is read at once: an object store takes tens of milliseconds for each."""

_REMEDIES = {
    "open_quote": "Close its quotes, double those inside them",
    "nul": "Remove the NUL",
    "mixed_ends": "Use one kind of line ending",
    "long_header": "Check the separator and the line ends",
    "doubled_name": "Rename one of them in the source, whatever their case",
    "nameless": "Name it in the source, or leave it out (pandas: to_csv(…, index=False))",
}
_OF_OPTIONS = (
    "Correct the file, or declare how the files are written: the option `encoding`; the option `escape` for "
    "quotes after a backslash, or an empty `quote` for none"
)

_CHARSETS = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "iso8859-1": "ISO-8859-1", "ascii": "US-ASCII"}
_OF_SPARK = ("iso-8859-1", "us-ascii", "utf-16", "utf-16be", "utf-16le", "utf-32", "utf-8")
_ONE_BYTE = ("ascii", "cp125", "iso8859", "koi8", "mac-")

_SPACES = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
"""Spark's default leaves out spaces around values when it writes, and keeps them when it reads."""

WHOLE_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Spark's default writes milliseconds to files of text."""

_WRITTEN = {"csv": {**WHOLE_TIMES, **_SPACES}, "json": WHOLE_TIMES}


@dataclass(frozen=True, slots=True)
class Form:
    """How the files of a slice or of a relation are written.

    Attributes:
        kind: The format: csv, json, parquet, …
        encoding: The encoding of text.
        separator: What separates fields of CSV.
        quote: What encloses fields; empty if nothing does.
        escape: What precedes a quote inside quotes.
        header: Whether the first record names the columns.
        comment: The character that begins a line without a record; empty if there is none.
        line_end: What ends a line; None if each file shows it.
        trim_names: Whether spaces at the ends of names in a header are left out.
    """

    kind: str
    encoding: str = "UTF-8"
    separator: str = ","
    quote: str = '"'
    escape: str = '"'
    header: bool = True
    comment: str = ""
    line_end: str | None = None
    trim_names: bool = True

    @property
    def codec(self) -> str | None:
        """The name of the encoding that Python knows; None if only Java knows it."""
        try:
            return codecs.lookup(self.encoding).name
        except LookupError:
            return None

    @property
    def charset(self) -> str:
        """The name of the encoding that Java knows."""
        codec = self.codec
        return self.encoding if codec is None else _CHARSETS.get(codec, codec)

    @property
    def is_utf8(self) -> bool:
        """Whether the encoding is UTF-8, or ASCII as a part of it."""
        return self.codec in ("utf-8", "ascii")

    @property
    def is_of_spark(self) -> bool:
        """Whether Spark reads the encoding without `spark.sql.legacy.javaCharsets`."""
        return self.charset.lower() in _OF_SPARK

    @property
    def has_plain_bytes(self) -> bool:
        """Whether the bytes of ASCII's characters are in no other character.

        Otherwise, as in UTF-16, line ends and quotes cannot be found among the bytes.
        """
        codec = self.codec
        return codec is None or codec == "utf-8" or codec.startswith(_ONE_BYTE)

    @property
    def options(self) -> dict[str, str]:
        """The options of Spark's reader and writer that differ from its defaults."""
        found: dict[str, str] = {}
        if self.kind == "csv":
            found = {
                "header": str(self.header).lower(),
                "sep": self.separator,
                "quote": self.quote,
                "escape": self.escape or "\\",
            }
        if self.kind in TEXTS and self.charset != "UTF-8":
            found["encoding"] = self.charset
            if self.kind == "json" and not self.has_plain_bytes:
                found["lineSep"] = "\n"  # Spark cannot find the ends of such lines by itself
        return found


def form_of_slices(declared: SliceFormat) -> Form:
    """Return the form of an entity's slices."""
    return Form(**{**declared.model_dump(), "escape": declared.escape or declared.quote})


def form_of_options(kind: str, options: Mapping[str, str]) -> Form:
    """Return the form of a relation's files, from Spark's options in any case.

    Other than in Spark, quotes inside quotes are doubled by default.
    """
    given = {name.lower(): value for name, value in options.items()}
    quote = given.get("quote", '"')
    return Form(
        kind,
        encoding=given.get("encoding", given.get("charset", "UTF-8")),
        separator=given.get("sep", given.get("delimiter", ",")).replace("\\t", "\t"),
        quote=quote,
        escape=given.get("escape", quote),
        header=given.get("header", "false").strip().lower() == "true",
        comment=given.get("comment", ""),
        line_end=given.get("linesep"),
    )


def writing_options(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options to write files of a format with, so that reading gives the same values.

    Empty text alone is read from CSV as null.
    """
    given = {name.lower() for name in options}
    quote = next((value for name, value in options.items() if name.lower() == "quote"), '"')
    defaults = {**({"escape": quote or "\\"} if kind == "csv" else {}), **_WRITTEN.get(kind, {})}
    return {**options, **{name: value for name, value in defaults.items() if name.lower() not in given}}


_FAULTS = {
    "undecodable": "there are bytes that are not {encoding}",
    "open_quote": "a quote that is opened here isn't closed where its field ends",
    "nul": "a field has a NUL and a quote inside its quotes, where Spark loses the NUL",
    "mixed_ends": "its lines end in several ways: {ends}",
    "long_header": "its first record is longer than {size} bytes",
    "doubled_name": "its header has the column {name} twice",
    "nameless": "its header has no name for column {place}",
}


class FileFault(ValueError):
    """A file can't be read as it is declared to be written.

    Attributes:
        code: What is wrong.
        path: The file.
        line: The number of the line; None if it is not known.
        given: The parameters of the code.
    """

    def __init__(self, code: str, path: str, line: int | None = None, **given: str) -> None:
        self.code = code
        self.path = path
        self.line = line
        self.given = given
        place = path if line is None else f"{path}, line {line}"
        super().__init__(f"{place}: {_FAULTS[code].format(**given)}")


_RAW = "org.apache.hadoop.fs.RawLocalFileSystem"

_ALL_VISIBLE = "[^_.]*"
"""Names of files that are read. Spark also takes those that start with `_` if they have a `=`."""


def uri(path: str) -> str:
    """Return what Spark reads for a path: one of this machine, whatever its default file system is."""
    return f"file://{path}" if path.startswith("/") else path


@dataclass(frozen=True, slots=True)
class Source:
    """Files of one format that are read together.

    Attributes:
        label: What messages call it, such as `the slice day1`.
        place: A local path or a URI: that of the folder, or of the only file.
        files: All its files that are not hidden.
        kind: Their format.
        is_folder: Whether the place is a folder.
        is_whole: Whether `files` are all files in the folder.
        is_relation: Whether a project declares the files with Spark's options; otherwise they are a slice.
        given: Options of Spark's reader that the project declares; they win over all others.
        details: What errors about it have as their details.
        subject: What errors about it have as their subject: of a slice, its name.
    """

    label: str
    place: str
    files: tuple[FileEntry, ...]
    kind: str
    is_folder: bool = True
    is_whole: bool = True
    is_relation: bool = False
    given: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    subject: str | None = None

    def path(self, file: FileEntry) -> str:
        """Return the path or URI of one of its files."""
        return join(self.place, file.name) if self.is_folder else self.place

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths or URIs of its files."""
        return tuple(map(self.path, self.files))

    @property
    def is_local(self) -> bool:
        """Whether its files are on this machine."""
        return local_path(self.place) is not None

    @property
    def places(self) -> list[str]:
        """What Spark reads to read exactly these files: the folder if they are all of it, or the files."""
        return list(map(uri, [self.place] if self.is_whole else self.paths))

    @property
    def options(self) -> dict[str, str]:
        """Options of Spark's reader for `places`: all files at any depth, no columns of folders; `given`."""
        # A name with `*` or `[` is not a pattern.
        options = {
            "__globPaths__": "false",
            "recursiveFileLookup": "true",
            "pathGlobFilter": _ALL_VISIBLE,
        }
        if self.is_local and any(":" in each for each in (self.place, *(file.name for file in self.files))):
            # Hadoop's file system with checksums cannot open local files with a colon in their name.
            options |= {"fs.file.impl": _RAW, "fs.file.impl.disable.cache": "true"}
        return {**options, **self.given}

    @property
    def visible(self) -> Source:
        """The source without the files that Spark's readers leave out by `options`."""
        kept = tuple(each for each in self.files if not each.name.rpartition("/")[2].startswith(("_", ".")))
        return self if len(kept) == len(self.files) else replace(self, files=kept)

    def only(self, files: Iterable[FileEntry]) -> Source:
        """Return the source with some of its files."""
        kept = tuple(files)
        return self if len(kept) == len(self.files) else replace(self, files=kept, is_whole=False)

    def check_names(self) -> None:
        """Raise the source's error if a file's name is not text: Spark would not find it."""
        for path in self.paths:
            try:
                path.encode()
            except UnicodeEncodeError:
                shown = path.encode(errors="backslashreplace").decode()
                raise self.error(f"the name of {shown} is not UTF-8", "Rename it") from None

    def first_bytes(self, begin: Begin, size: int = PROBE) -> dict[str, bytes]:
        """Return the first bytes of the files that aren't empty, by their names."""
        wanted = [file for file in self.files if file.size]

        def first(file: FileEntry) -> bytes:
            try:
                return begin(self.path(file), size)
            except OSError:
                return b""  # Spark reports the error when it reads the file

        if self.is_local or len(wanted) < 2:
            return {file.name: first(file) for file in wanted}
        with ThreadPoolExecutor(min(_AT_ONCE, len(wanted))) as pool:
            return {file.name: found for file, found in zip(wanted, pool.map(first, wanted), strict=True)}

    def error(
        self, why: str, remedy: str, *, is_drift: bool = False, may_skip: bool = False, **details: Any
    ) -> LakewrightError:
        """Return the error for files that can't be read.

        Args:
            why: The reason.
            remedy: What to do, without a full stop.
            is_drift: Whether their columns or types do not fit.
            may_skip: Whether a slice that can't be corrected may be skipped.
            details: Further details.
        """
        kind = TargetError if self.is_relation else SchemaDriftError if is_drift else SliceError
        if may_skip:
            details[MAY_SKIP] = True
        return kind(
            f"{self.label} can't be read: {why}",
            remedy=f"{remedy}.",
            details={**self.details, **details},
            subject=self.subject,
        )

    def fault_error(self, fault: FileFault, form: Form) -> LakewrightError:
        """Return the error for a file that isn't as it is declared to be written."""
        if fault.code in ("doubled_name", "nameless"):
            return self.error(str(fault), _REMEDIES[fault.code], is_drift=True)
        if self.is_relation:
            return self.error(str(fault), _OF_OPTIONS)
        if fault.code != "undecodable":
            return self.error(str(fault), _REMEDIES[fault.code], may_skip=True)
        local = local_path(fault.path)
        marked = None if local is None else marked_encoding(local)
        return self.error(
            str(fault),
            f"Name the encoding of the files in the entity's settings (format: {{kind: {form.kind}, "
            f"encoding: {marked or 'windows-1252'}}}), or deliver the slice again",
            encoding=form.encoding,
        )


@dataclass(frozen=True, slots=True)
class KnownColumns:
    """What is known of the columns of files before they are read.

    Attributes:
        zone: Time zone of times without an offset; None if these are no instants.
        type_of: Returns the type that is declared for a column, or that the table's has; None without one.
        names: Names of columns that are declared.
        keys: Names of columns that have a type in any case.
        is_used: Returns whether an expression uses a column.
        without_rows: The columns of text files that have no records.
    """

    zone: str | None
    type_of: Callable[[str], Type | None] = lambda _: None
    names: Collection[str] = ()
    keys: Collection[str] = ()
    is_used: Callable[[str], bool] = lambda _: False
    without_rows: Sequence[StructField] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """Files that are read to raw values, with all that their reader must know.

    Attributes:
        session: A session; of slices a strict one.
        system: Where the files are.
        source: The files.
        form: How they are written.
        known: What is known of their columns.
        corrupt: Column for the text of records that do not parse, or have a value that does not fit the type
            of all files; without it, they fail the query.
        others: Folders or files of Parquet whose columns are the same, which are read with them.
        note: Receives what a user must know of columns that are left out, or are of several kinds.
    """

    session: SparkSession
    system: Files
    source: Source
    form: Form
    known: KnownColumns
    corrupt: str | None = None
    others: Sequence[str] = ()
    note: Callable[[str], None] = lambda _: None

    def of(self, source: Source) -> Reading:
        """Return what reads other files in the same way."""
        return replace(self, source=source)

    @property
    def options(self) -> dict[str, str]:
        """The options of Spark's reader; those that the project declares win over that of the form."""
        return {**self.form.options, **self.source.options}

    @property
    def without_rows(self) -> DataFrame:
        """No rows, with the columns that are known of files without records."""
        columns = ((field.name, field.type.ddl) for field in self.known.without_rows)
        return empty_frame(self.session, columns)

    def load(
        self,
        places: Sequence[str] = (),
        *,
        kind: str | None = None,
        schema: str | StructType | None = None,
        defaults: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> DataFrame:
        """Return the rows of the files as Spark's reader makes them, lazily.

        Args:
            places: What Spark reads; by default all files.
            kind: The reader; by default that of their format.
            schema: The columns; None if Spark is to find them.
            defaults: Options over which those that the project declares win.
            options: Options that win over those.
        """
        own = {**self.form.options, **(defaults or {}), **self.source.options, **(options or {})}
        reader = self.session.read.format(kind or self.source.kind).options(**own)
        reader = reader if schema is None else reader.schema(schema)
        return reader.load(list(places) or [*self.source.places, *self.others])


def marked_encoding(path: Path) -> str | None:
    """Return the wide encoding that a file's byte order mark shows, or None."""
    try:
        with opened(path) as stream:
            first = stream.read(4)
    except DAMAGED:
        return None
    # The mark of UTF-32 begins with that of UTF-16.
    if first.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    return "UTF-16" if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None
