"""The format of an entity's slices, with what is particular to text files.

Lakewright's own: Datalake Foundation reads Parquet only.
"""

from __future__ import annotations

import codecs
from typing import Annotated, Literal

from pydantic import Field, model_validator

from lakewright.spec.models.base import Lower, SnakeModel, from_text, inconsistent

_ESCAPES = {"\\t": "\t", "tab": "\t"}
_OF_CSV = ("separator", "quote", "escape", "header", "trim_names")
_TEXTS = ("csv", "json")


def _sign(written: str) -> str:
    """Return a separator as its character: a tab may be written as a backslash and a t, or as `tab`."""
    return _ESCAPES.get(written.strip().lower(), written)


class SliceFormat(SnakeModel):
    """How the files of slices are read."""

    kind: Lower[Literal["parquet", "csv", "json", "avro", "orc"]] = Field(
        default="parquet", description="Format of the files."
    )
    encoding: str = Field(
        default="UTF-8",
        description="Encoding of csv and json, such as windows-1252.",
    )
    separator: Annotated[str, from_text(_sign)] = Field(
        default=",", min_length=1, description="csv: separator of fields, or `tab`."
    )
    quote: str = Field(default='"', max_length=1, description="csv: quote around fields; empty for none.")
    escape: str | None = Field(
        default=None,
        min_length=1,
        max_length=1,
        description="csv: what precedes a quote inside quotes; default: the quote.",
    )
    header: bool = Field(
        default=True,
        description="csv: whether the first line of each file names the columns.",
    )
    trim_names: bool = Field(
        default=True, description="csv: trim spaces and tabs around names in the header."
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


SliceFormatValue = Annotated[SliceFormat | None, from_text(lambda kind: {"kind": kind})]
"""A format, or its kind alone."""
