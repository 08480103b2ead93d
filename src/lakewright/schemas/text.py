"""The base class of schemas that are given as a JSON document."""

from __future__ import annotations

import json
import urllib.request
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.errors import SpecError
from lakewright.schema.types import Struct, StructField
from lakewright.schemas.schema import Schema
from lakewright.spec.models.fields import Field
from lakewright.spec.models.text_marks import FileText

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace


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

    @property
    def allows_nulls(self) -> bool:
        """Whether every column may be null, whatever the document says."""
        return False

    def _field(self, column: StructField) -> Field:
        nullable = self.allows_nulls or column.nullable
        return Field(name=column.name, type=column.type, nullable=nullable, description=column.description)

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

    @property
    def allows_nulls(self) -> bool:
        """Whether that is declared."""
        return self.nullable
