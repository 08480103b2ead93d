"""The base class of schemas that are given as a JSON document."""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.errors import SpecError
from lakewright.schemas.schema import Schema
from lakewright.spec.models.fields import Field

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["TextSchema"]


class TextSchema(Schema):
    """A schema in a JSON format, written in the project or in a file."""

    file: str | None = Declared(
        default=None, description="File with the schema; relative to the project's folder."
    )
    spec: str | None = Declared(default=None, description="The schema itself, as text.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.file is None) == (self.spec is None):
            raise ValueError(f"a schema of kind {self.kind!r} needs either `file` or `spec`")
        return self

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the columns.

        Raises:
            SpecError: The file can't be read, or its text isn't a schema of this kind.
        """
        text = self.spec if self.spec is not None else workspace.read_file(self.file or "")
        where = self.file or f"the schema of kind {self.kind!r}"
        try:
            return self.parse(json.loads(text))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SpecError.of(f"{where} is not a schema of kind {self.kind!r}: {error}") from error

    @abstractmethod
    def parse(self, document: Any) -> tuple[Field, ...]:
        """Return the columns that a document describes.

        Raises:
            ValueError, KeyError, TypeError: It isn't a schema of this kind.
        """
