"""The format of an entity's slices, with what is particular to text files.

Lakewright's own: Datalake Foundation reads Parquet only.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from lakewright.spec.models.base import SnakeModel, inconsistent, lower

__all__ = ["SliceFormat", "SliceFormatValue"]

_ESCAPES = {"\\t": "\t", "tab": "\t"}
_OF_CSV = ("separator", "quote", "escape", "header")
_TEXTS = ("csv", "json")
_CHARSETS = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "iso8859-1": "ISO-8859-1", "ascii": "US-ASCII"}
_OF_SPARK = ("iso-8859-1", "us-ascii", "utf-16", "utf-16be", "utf-16le", "utf-32", "utf-8")


def _short(declared: Any) -> Any:
    """Return the map that a short form stands for: `format: csv` is `format: {kind: csv}`."""
    return {"kind": declared} if isinstance(declared, str) else declared


def _sign(declared: Any) -> Any:
    """Return a separator as its character: a tab may be written as a backslash and a t, or as `tab`."""
    return _ESCAPES.get(declared.strip().lower(), declared) if isinstance(declared, str) else declared


class SliceFormat(SnakeModel):
    """How the files of slices are read."""

    kind: Annotated[Literal["parquet", "csv", "json", "avro", "orc"], BeforeValidator(lower)] = Field(
        default="parquet", description="Format of the files."
    )
    encoding: str = Field(
        default="UTF-8",
        description="Character encoding of csv and json, such as ISO-8859-1 or windows-1252. Bytes that it "
        "does not have fail the slice.",
    )
    separator: Annotated[str, BeforeValidator(_sign)] = Field(
        default=",", min_length=1, description="csv: what separates fields; `tab` for a tab."
    )
    quote: str = Field(
        default='"', max_length=1, description="csv: what encloses fields; empty if nothing does."
    )
    escape: str | None = Field(
        default=None,
        min_length=1,
        max_length=1,
        description="csv: what precedes a quote inside quotes; default the quote itself.",
    )
    header: bool = Field(
        default=True,
        description="csv: whether the first line of each file names the columns; otherwise they are _c0, "
        "_c1, … in their order.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> SliceFormat:
        given = [name for name in _OF_CSV if name in self.model_fields_set and self.kind != "csv"]
        if "encoding" in self.model_fields_set and self.kind not in _TEXTS:
            given.append("encoding")
        if given:
            raise inconsistent(f"{', '.join(given)}: {self.kind} files have no such setting")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise inconsistent(f"there is no encoding {self.encoding!r}") from None
        if self.kind == "csv" and self.quote == self.separator:
            raise inconsistent("separator and quote are the same")
        return self

    @property
    def is_utf8(self) -> bool:
        """Whether the encoding is UTF-8, or ASCII as a part of it."""
        return codecs.lookup(self.encoding).name in {"utf-8", "ascii"}

    @property
    def is_wide(self) -> bool:
        """Whether a character takes at least two bytes, so that line ends cannot be found as bytes."""
        return codecs.lookup(self.encoding).name.startswith(("utf-16", "utf-32"))

    @property
    def charset(self) -> str:
        """The encoding by the name that Java knows."""
        name = codecs.lookup(self.encoding).name
        return _CHARSETS.get(name, name)

    @property
    def is_of_spark(self) -> bool:
        """Whether Spark reads the encoding without being told to use those of Java."""
        return self.charset.lower() in _OF_SPARK

    @property
    def has_plain_quotes(self) -> bool:
        """Whether quotes are those of RFC 4180, in an encoding whose signs are those of ASCII."""
        return self.quote == '"' and self.escape in (None, '"') and not self.is_wide

    @property
    def options(self) -> Mapping[str, str]:
        """The options of Spark's reader that differ from its defaults."""
        found: dict[str, str] = {}
        if self.kind == "csv":
            found = {
                "header": str(self.header).lower(),
                "sep": self.separator,
                "quote": self.quote,
                "escape": self.escape or self.quote or "\\",
            }
        if self.kind in _TEXTS and self.charset != "UTF-8":
            found["encoding"] = self.charset
            if self.kind == "json" and self.is_wide:
                found["lineSep"] = "\n"  # Spark cannot find the ends of such lines by itself
        return found


SliceFormatValue = Annotated[SliceFormat | None, BeforeValidator(_short)]
"""A format, or its kind alone."""
