"""The base classes of schemas, and of definitions that declare columns."""

from __future__ import annotations

import json
import urllib.request
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.errors import SpecError
from lakewright.schema.types import Struct, StructField
from lakewright.spec.models.base import KindOf, Named
from lakewright.spec.models.fields import Field, TypeText
from lakewright.spec.models.text_marks import FileText

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace


class Schema(Named):
    """Declares the columns of a relation, a mapping or a check."""

    @abstractmethod
    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the columns, in order."""

    def primary_key(self) -> tuple[str, ...]:
        """Return the names of the columns that identify a row; none if no key is declared."""
        return ()

    def mappings(self) -> tuple[str, ...]:
        """Return the names of the mappings that the columns are taken from."""
        return ()


class DeclaredColumns(Named):
    """A definition with columns: a map of names to types, or a schema."""

    columns: dict[str, TypeText] | None = Declared(default=None, description="Columns with their types.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] | None = Declared(
        default=None, alias="schema", description="Columns, instead of `columns`."
    )

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        if (self.columns is None) == (self.declared_schema is None):
            raise ValueError(f"kind {self.kind!r} needs either `columns` or `schema`")
        return self

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the declared columns with their types."""
        if self.declared_schema is not None:
            return self.declared_schema.fields(workspace)
        return tuple(Field(name=name, type=found) for name, found in (self.columns or {}).items())


LARGEST = 10_000_000
"""Bytes of a schema that is read from an address."""
SECONDS = 20.0


def fetched(url: str) -> str:
    """Return the text at an address.

    Raises:
        SpecError: The address is not supported, or it can't be read.
    """
    if urlsplit(url).scheme not in ("http", "https", "file"):
        raise SpecError.of(f"{url} can't be read: only https, http and file are supported")
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:  # noqa: S310 - the scheme is checked above
            return str(answer.read(LARGEST).decode())
    except (OSError, ValueError) as error:
        raise SpecError.of(f"{url} can't be read: {error}") from error


class TextSchema(Schema):
    """A schema in a JSON format, written in the project or in a file."""

    file: Annotated[str | None, FileText.OF_PROJECT] = Declared(
        default=None, description="File with the schema."
    )
    url: str | None = Declared(
        default=None, description="Address of the schema: https, http or file; read each time it is needed."
    )
    spec: str | None = Declared(default=None, description="The schema itself, as text.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(each is not None for each in (self.file, self.url, self.spec)) != 1:
            raise ValueError(f"a schema of kind {self.kind!r} needs one of `file`, `url` and `spec`")
        return self

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the columns.

        Raises:
            SpecError: The file can't be read, or its text isn't a schema of this kind.
        """
        where = self.file or self.url or f"the schema of kind {self.kind!r}"
        try:
            found = self.parse(self.document(self._text(workspace)))
            return tuple(self._field(each) for each in found.fields)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SpecError.of(f"{where} is not a schema of kind {self.kind!r}: {error}") from error

    def _text(self, workspace: Workspace) -> str:
        if self.spec is not None:
            return self.spec
        return fetched(self.url) if self.url is not None else workspace.read_file(self.file or "")

    def document(self, text: str) -> Any:
        """Return the document that a text is.

        Raises:
            ValueError: It isn't one.
        """
        return json.loads(text)

    def _field(self, column: StructField) -> Field:
        return Field.of(column)

    @abstractmethod
    def parse(self, document: Any) -> Struct:
        """Return the columns that a document describes.

        Raises:
            ValueError, KeyError, TypeError: It isn't a schema of this kind.
        """


class NullableSchema(TextSchema):
    """A schema in a format of other tools, whose columns may be declared to allow nulls."""

    nullable: bool = Declared(
        default=False, description="Allow nulls in every column, whatever the document says."
    )

    def _field(self, column: StructField) -> Field:
        return Field.of(replace(column, nullable=self.nullable or column.nullable))
