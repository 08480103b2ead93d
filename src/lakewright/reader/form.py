"""How files are written: one value, made of what an entity or a `file` relation declares.

Source: RFC 4180, section 2 (quotes inside quotes are doubled).
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakewright.spec.models.slice_format import SliceFormat

__all__ = ["TEXTS", "Form", "form_of_options", "form_of_slices", "writing_options"]

TEXTS = ("csv", "json")
"""Kinds of files that consist of text, with an encoding."""

_CHARSETS = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "iso8859-1": "ISO-8859-1", "ascii": "US-ASCII"}
_OF_SPARK = ("iso-8859-1", "us-ascii", "utf-16", "utf-16be", "utf-16le", "utf-32", "utf-8")
_ONE_BYTE = ("ascii", "cp125", "iso8859", "koi8", "mac-")

_SPACES = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
"""Spark's default leaves out spaces around values when it writes, and keeps them when it reads."""


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
        given: Options of Spark's reader that the project declares; they win over all others.
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
    given: Mapping[str, str] = field(default_factory=dict)

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
    return Form(
        declared.kind,
        encoding=declared.encoding,
        separator=declared.separator,
        quote=declared.quote,
        escape=declared.escape or declared.quote,
        header=declared.header,
        trim_names=declared.trim_names,
    )


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
        given=options,
    )


def writing_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options to write CSV files with, so that reading gives the same values.

    Empty text alone is read as null.
    """
    given = {name.lower() for name in options}
    quote = next((value for name, value in options.items() if name.lower() == "quote"), '"')
    defaults = {"escape": quote or "\\", **_SPACES}
    return {**options, **{name: value for name, value in defaults.items() if name.lower() not in given}}
