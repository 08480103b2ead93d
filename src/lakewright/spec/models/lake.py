"""The `lake:` section: the locations of bronze and silver, and the settings that all entities share.

Source: `processing-strategies.md`. The names are those of Datalake Foundation's `environment`.
"""

from __future__ import annotations

from enum import StrEnum
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator

from lakewright.spec.cron import find_zone
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.models.base import Lower, SnakeModel

PATH_TEMPLATES = ("raw_path", "bronze_path", "silver_path")
"""Keys whose templates may use the names of an entity."""


class TableOutput(StrEnum):
    """How silver tables are found: by path or in the catalog."""

    PATHS = "paths"
    CATALOG = "catalog"


OutputText = Lower[TableOutput]


class LakeSettings(SnakeModel):
    """The location and layout of the lake. Paths are templates, which are evaluated for each entity."""

    name: str = Field(default="", description="Name of the environment, for people.")
    root_folder: str = Field(default="", description="Folder or URI of the lake.")
    timezone: str = Field(
        default="UTC",
        description="IANA time zone of times without an offset.",
    )
    raw_path: str = Field(
        default="${connection}/${entity}", description="Path below `raw` of deliveries, for loaders."
    )
    bronze_path: str = Field(
        default="${connection}/${entity}", description="Path below `bronze` of an entity's slices."
    )
    silver_path: str = Field(
        default="${connection}/${destination}", description="Path below `silver` of an entity's table."
    )
    secure_container_suffix: str = Field(
        default="", description="Suffix of `bronze` and `silver` for secure entities."
    )
    systemfield_prefix: str = Field(default="dlf_", description="Prefix of the names of system columns.")
    output_method: OutputText = Field(default=TableOutput.PATHS, description="How tables are found.")
    bronze_output: OutputText | None = Field(
        default=None, description="Without effect: slices are files or folders."
    )
    silver_output: OutputText | None = Field(
        default=None, description="Overrides output_method for silver tables."
    )

    registered_in: str = Field(
        default="",
        alias="register",
        description="Database, or `catalog.database`, that names tables for other engines.",
    )

    @field_validator("registered_in")
    @classmethod
    def _database(cls, text: str) -> str:
        parts = text.split(".")
        if text and not has_expression(text) and not (len(parts) <= 2 and all(map(str.strip, parts))):
            raise ValueError(f"{text!r} is not a database; write `database` or `catalog.database`")
        return text

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, zone: str) -> str:
        return zone if has_expression(zone) else find_zone(zone).key

    @field_validator("secure_container_suffix", "systemfield_prefix")
    @classmethod
    def _one_name(cls, text: str) -> str:
        if not has_expression(text) and any(sign in text for sign in "/\\. ,;{}()=+\t\n`"):
            raise ValueError(f"{text!r} cannot be part of the name of a folder or column")
        return text

    @property
    def is_remote(self) -> bool:
        """Whether the lake isn't on this machine."""
        return "://" in self.root_folder and not self.root_folder.startswith("file:")

    @property
    def zone(self) -> ZoneInfo:
        """The time zone."""
        return ZoneInfo(self.timezone)

    def container(self, layer: str, *, is_secure: bool) -> str:
        """Return the name of a layer's folder, such as `bronze`, with the suffix for secure entities."""
        return f"{layer}{self.secure_container_suffix}" if is_secure else layer
