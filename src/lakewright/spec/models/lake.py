"""The `lake:` section: where bronze and silver are, and what all entities have in common.

Source: `processing-strategies.md`; the names are those of Datalake Foundation's `environment`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BeforeValidator, Field, field_validator

from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.models.base import SnakeModel, lower
from lakewright.spec.models.places import place_within
from lakewright.spec.suggestions import suggestion

__all__ = ["PATH_TEMPLATES", "LakeSettings", "Output", "OutputText"]


PATH_TEMPLATES = ("raw_path", "bronze_path", "silver_path")
"""Keys in which an entity's own names may stand."""


class Output(StrEnum):
    """How silver tables are found."""

    PATHS = "paths"
    CATALOG = "catalog"


OutputText = Annotated[Output, BeforeValidator(lower)]


class LakeSettings(SnakeModel):
    """Where the lake is and how it is laid out; paths are templates, resolved for each entity."""

    name: str = Field(default="", description="Name of the environment, for people.")
    root_folder: str = Field(
        default="",
        description="Folder or URI below which the lake lies; a relative one starts at the project.",
    )
    timezone: str = Field(
        default="UTC",
        description="IANA name of the zone of processing times without offset, and of such times in adopted "
        "tables; those in slices are UTC.",
    )
    raw_path: str = Field(
        default="${connection}/${entity}",
        description="Below `raw`: what was delivered, before it is a slice; only for what lands slices.",
    )
    bronze_path: str = Field(
        default="${connection}/${entity}", description="Below `bronze`: an entity's slices."
    )
    silver_path: str = Field(
        default="${connection}/${destination}", description="Below `silver`: an entity's table."
    )
    secure_container_suffix: str = Field(
        default="", description="Added to `bronze` and `silver` for secure entities."
    )
    systemfield_prefix: str = Field(
        default="dlf_", description="What the names of system columns start with."
    )
    output_method: OutputText = Field(default=Output.PATHS, description="Tables by path, or in the catalog.")
    bronze_output: OutputText | None = Field(
        default=None, description="`catalog` is accepted with a warning: slices are files or folders."
    )
    silver_output: OutputText | None = Field(default=None, description="As output_method, for silver alone.")

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, zone: str) -> str:
        if has_expression(zone):
            return zone
        known = available_timezones()
        if zone not in known:
            raise ValueError(
                f"unknown time zone {zone!r}; {suggestion(zone, known, shown=0) or 'IANA names are known'}"
            )
        return zone

    @field_validator("secure_container_suffix", "systemfield_prefix")
    @classmethod
    def _one_name(cls, text: str) -> str:
        if not has_expression(text) and any(sign in text for sign in "/\\. ,;{}()=+\t\n`"):
            raise ValueError(f"{text!r} can't be part of a folder's or column's name")
        return text

    @property
    def zone(self) -> ZoneInfo:
        """The time zone."""
        return ZoneInfo(self.timezone)

    def container(self, layer: str, *, is_secure: bool) -> str:
        """Return the name of a layer's folder: `bronze`, or with the suffix for secure entities."""
        return f"{layer}{self.secure_container_suffix}" if is_secure else layer

    def place(self, *parts: str, what: str = "path") -> str:
        """Return a place below the root folder.

        Raises:
            SpecError: It would be outside.
        """
        return place_within(self.root_folder, *parts, what=what)
