"""The `openApi` and `swagger` schemas: an entity of an OpenAPI or Swagger document."""

from __future__ import annotations

from typing import Any

from pydantic import Field as Declared

from lakewright.schemas.json import json_fields
from lakewright.schemas.text import TextSchema
from lakewright.spec.models.fields import Field

__all__ = ["OpenApiSchema"]

_PLACES = (("components", "schemas"), ("definitions",))
"""Where OpenAPI 3 and Swagger 2 keep entities."""


class OpenApiSchema(TextSchema):
    """The columns are the properties of an entity of an OpenAPI document, in YAML or JSON."""

    entity: str = Declared(description="Name of the entity in the document.")
    nullable: bool = Declared(
        default=False, description="Allow nulls in every column, whatever the document says."
    )

    def document(self, text: str) -> Any:
        """Return the document, which is YAML; JSON is YAML, too.

        Raises:
            ValueError: It isn't one.
        """
        import yaml

        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(" ".join(str(error).split())) from error

    def parse(self, document: Any) -> tuple[Field, ...]:
        """Return the properties of the entity, and those that `allOf` adds."""
        entities: dict[str, Any] = {}
        for place in _PLACES:
            found: Any = document
            for step in place:
                found = found.get(step, {}) if isinstance(found, dict) else {}
            entities |= found
        if self.entity not in entities:
            raise ValueError(
                f"it has no entity {self.entity!r}, only {', '.join(sorted(entities)) or 'none'}"
            )
        fields = json_fields(document, entities[self.entity])
        if not self.nullable:
            return fields
        return tuple(field.model_copy(update={"nullable": True}) for field in fields)
