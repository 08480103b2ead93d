"""Past versions of an entity's records, from before its first slice: where they are, and their times.

Source: the rules of rewinds, "Rebuild"; it is Lakewright's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Self

from pydantic import Field, model_validator

from lakewright.spec.models.base import SnakeModel, TextMap, Texts, inconsistent
from lakewright.spec.models.slice_format import SliceFormatValue


class HistoryFrom(SnakeModel):
    """Dated exports in a folder, or a table of versions that another tool made."""

    folder: str | None = Field(
        default=None,
        min_length=1,
        description="Folder of dated exports: a URI, or a path below the lake's root folder.",
    )
    table: str | None = Field(
        default=None,
        min_length=1,
        description="Table of versions: a name in the catalog, or the path or URI, with a slash, of a "
        "Delta table.",
    )
    valid_from: str = Field(min_length=1, description="Column with the start of a version.")
    valid_to: str | None = Field(
        default=None,
        min_length=1,
        description="Column with the end of a version; default: a version ends when the next one begins.",
    )
    sentinel: Texts = Field(
        default=(),
        description="Values of valid_to for no end, such as 9999-12-31.",
    )
    columns: TextMap = Field(
        default_factory=dict,
        description="Column of the history by its name in the slices, where different.",
    )
    format: SliceFormatValue = Field(
        default=None, description="Format of the files in the folder; default: that of the slices."
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.folder is None) == (self.table is None):
            raise inconsistent(
                "history_from needs a folder or a table",
                remedy="Give one of them: history_from: {folder: exports, valid_from: exported_on}.",
            )
        if self.table is not None and self.format is not None:
            raise inconsistent("history_from: format is for a folder", remedy="Remove format.")
        if self.sentinel and self.valid_to is None:
            raise inconsistent("history_from: sentinel needs valid_to", remedy="Remove sentinel.")
        return self

    @property
    def place(self) -> str:
        """The folder or the table, as declared."""
        return self.folder or self.table or ""

    @property
    def has_exports(self) -> bool:
        """Whether rows are those of dated exports, in contrast to versions with an end of their own."""
        return self.folder is not None and self.valid_to is None

    @property
    def text(self) -> str:
        """The declaration as a text, which is the same for equal declarations."""
        return json.dumps(self.model_dump(mode="json", exclude_defaults=True), sort_keys=True)

    def problems(self, *, is_historic: bool, has_adoption: bool) -> Iterator[str]:
        """Yield the problems of this declaration for an entity."""
        if not is_historic:
            yield "history_from is for the strategy historic: full and merge keep no versions"
        if has_adoption:
            yield "history_from and adopt exclude each other: an adopted table has its history already"
