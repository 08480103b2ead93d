"""Settings of entities, and the source connections from which entities inherit settings.

Source: `processing-strategies.md`. Names and shapes are Datalake Foundation's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from lakewright.spec.models.adoption import AdoptionValue, HistoryFrom
from lakewright.spec.models.base import ALSO, Listed, Lower, Named, SnakeModel, TextMap, Texts, inconsistent
from lakewright.spec.models.column import Injections
from lakewright.spec.models.lake import PATH_TEMPLATES, OutputText
from lakewright.spec.models.slice_format import SliceFormat, SliceFormatValue
from lakewright.spec.models.watermark import Watermark

PLACE_TEMPLATES = (*PATH_TEMPLATES, "bronze_table", "silver_table", "slices_from")
"""Settings whose templates may use the entity's own names."""


DELETION_VECTORS = "delta.enableDeletionVectors"
"""The table property by which changes mark rows in files instead of writing the files again."""

OF_NAME, OF_NOW = "name", "now"
"""The setting `time` for the date in a slice's name, and for the time of the clock."""

NAMED_TIME = "${slice.time}"
"""The expression over a slice that is the date in its name; empty without one."""

LOG_DAYS = 30
"""Days for which Delta keeps a table's log unless a property says otherwise."""


MIB = 1 << 20


class Maintenance(SnakeModel):
    """When the files of a silver table are compacted after slices were processed.

    Source: Delta's documentation, "Optimizations" (compaction) and "Remove unused data files" (vacuum). The
    thresholds are Lakewright's own.

    A file of at least `file_mib` is rewritten only to clear out its marked rows, so that versions that ended
    long ago stay where they are.
    """

    enabled: bool = Field(default=True, description="Whether runs do maintenance.")
    small_files: int = Field(
        default=20, ge=2, description="Small files in a partition from which they are compacted."
    )
    file_mib: int = Field(
        default=64, ge=1, description="Size in MiB at which compaction aims; smaller files are small."
    )
    marked_rows: float = Field(
        default=0.2, gt=0, lt=1, description="Share of rows in deletion vectors above which they are removed."
    )
    vacuum: bool = Field(
        default=False,
        description="Whether files that only older versions need are removed after a compaction.",
    )

    @property
    def file_bytes(self) -> int:
        """Size in bytes below which a file is small."""
        return self.file_mib * MIB


class TimeColumn(SnakeModel):
    """The column of a slice whose latest value is the slice's processing time."""

    column: str = Field(alias="from", min_length=1, description="A date or a time.")


def _column_or_text(declared: Any) -> Any:
    """Check what has no text's form, so that there is one error of it."""
    column = declared.get("from") if isinstance(declared, Mapping) and len(declared) == 1 else None
    is_text = declared is None or isinstance(declared, str | TimeColumn)
    if not is_text and not (isinstance(column, str) and column):
        raise inconsistent(f"{declared!r} is neither a text nor a column", remedy="Write {from: COLUMN}.")
    return declared


class EntitySettings(SnakeModel):
    """Settings of an entity, which override its connection's. Unknown keys are kept for templates."""

    model_config = ConfigDict(extra="allow")

    raw_path: str | None = Field(default=None, description="Template of the path below `raw`, for loaders.")
    bronze_path: str | None = Field(default=None, description="Template of the path below `bronze`.")
    silver_path: str | None = Field(default=None, description="Template of the path below `silver`.")
    slices_from: str | None = Field(
        default=None,
        min_length=1,
        description="Slices outside of the lake: a folder or pattern, as of the short form's `from`.",
    )
    bronze_table: str | None = Field(default=None, description="Accepted with a warning, without effect.")
    silver_table: str | None = Field(default=None, description="Template of the catalog table.")
    output_method: OutputText | None = Field(
        default=None, description="How its table is found; overrides the lake's."
    )
    delete_missing: bool = Field(
        default=False, description="Soft-delete records that are missing from a slice."
    )
    delete_scope: Lower[Literal["closed", "open", "full"]] = Field(
        default="closed",
        description="Window of delete_missing.",
    )
    max_delete_ratio: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Share of its window that delete_missing may delete.",
    )
    delete_floor: int = Field(default=20, ge=0, description="Rows that delete_missing may always delete.")
    sequence_by: str | None = Field(
        default=None,
        description="Column that orders the states of a record.",
    )
    duplicates: Lower[Literal["refuse", "latest"]] = Field(
        default="refuse",
        description="Whether rows of a slice with the same business key fail it, or the greatest "
        "sequence_by wins.",
    )
    last_seen: Lower[Literal["column", "on_change"]] = Field(
        default="column", description="Whether lastSeen of unchanged rows is updated too."
    )
    null_keys: Lower[Literal["error", "allow"]] = Field(
        default="error", description="Nulls in the business key."
    )
    schema_drift: Lower[Literal["evolve", "ignore", "fail"]] = Field(
        default="evolve", description="Added, removed or changed columns."
    )
    allow_empty: bool = Field(
        default=False, description="Let an empty slice empty the table (strategy full)."
    )
    late_slices: Lower[Literal["hold", "place", "end", "skip"]] = Field(
        default="hold",
        description="What apply does with a slice that is older than a processed one; hold: ask.",
    )
    fold: bool = Field(
        default=True,
        description="Process several pending slices in one commit.",
    )
    changed_slices: Lower[Literal["hold", "take", "keep"]] = Field(
        default="hold",
        description="What happens if the files of a processed slice change; hold: ask.",
    )
    partition_moves: Lower[Literal["allow", "never"]] = Field(
        default="allow", description="never: records keep their partition; a merge searches only that."
    )
    hash_exclude: Texts = Field(default=(), description="Columns whose changes do not count.")
    bronze_format: Lower[Literal["parquet", "csv", "json", "avro", "orc"]] = Field(
        default="parquet", description="Format of the slices."
    )
    format: SliceFormatValue = Field(
        default=None,
        description="Format of the slices; a text is the kind alone.",
        json_schema_extra={ALSO: [{"type": "string"}]},
    )
    naive_times: Lower[Literal["lake", "utc", "refuse"]] = Field(
        default="lake",
        description="Whether times without an offset are in the lake's time zone, in UTC, or no timestamps.",
    )
    on_bad_rows: Lower[Literal["fail", "quarantine"]] = Field(
        default="fail",
        description="Whether bad rows fail the slice, or are put aside.",
    )
    max_bad_rows: int = Field(
        default=100,
        ge=0,
        le=100_000,
        description="Rows of a slice that may be put aside.",
    )
    adopt: AdoptionValue = Field(
        default=None, description="Columns of an existing table that the entity adopts."
    )
    history_from: HistoryFrom | None = Field(
        default=None,
        description="Versions from before the first slice.",
    )
    table_properties: TextMap = Field(default_factory=dict, description="Delta table properties.")
    readers: Lower[Literal["deletion_vectors", "any"]] = Field(
        default="deletion_vectors",
        description="Readers of its table: those that know Delta's deletion vectors, or any.",
    )
    maintenance: Maintenance = Field(
        default_factory=Maintenance, description="When the files of its table are compacted."
    )
    time: Annotated[TimeColumn | str | None, BeforeValidator(_column_or_text)] = Field(
        default=None,
        description="Processing time of a slice, as in the short form.",
    )
    undo_window: str | None = Field(
        default=None,
        pattern=r"^[1-9][0-9]{0,4}d$",
        description="How long slices can be undone, such as `30d`; default: 7 days.",
    )

    @model_validator(mode="before")
    @classmethod
    def _with_kind(cls, declared: Any) -> Any:
        """Take the kind of `format` from `bronze_format` if it has none of its own."""
        form = declared.get("format") if isinstance(declared, Mapping) else None
        if isinstance(form, Mapping) and "kind" not in form and declared.get("bronze_format"):
            return {**declared, "format": {**form, "kind": declared["bronze_format"]}}
        return declared

    @field_validator("time")
    @classmethod
    def _is_time(cls, text: TimeColumn | str | None) -> TimeColumn | str | None:
        is_word = not isinstance(text, str) or text.strip().lower() in (OF_NAME, OF_NOW) or "$" in text
        if isinstance(text, str) and not is_word and not {"y", "M", "d"} <= set(text):
            raise ValueError(
                f"{text!r} is not name, now, a form of dates such as dd.MM.yyyy, an expression, or "
                "{from: COLUMN}"
            )
        return text

    @model_validator(mode="after")
    def _one_format(self) -> EntitySettings:
        if "bronze_format" in self.model_fields_set and self.slice_format.kind != self.bronze_format:
            raise inconsistent(
                f"the format is {self.slice_format.kind}, but bronze_format is {self.bronze_format}",
                remedy="Remove bronze_format.",
            )
        return self

    @model_validator(mode="after")
    def _one_kind_of_readers(self) -> EntitySettings:
        wanted = self.table_properties.get(DELETION_VECTORS, "false")
        if self.readers == "any" and wanted.strip().lower() == "true":
            raise inconsistent(
                f"readers: any contradicts the table property {DELETION_VECTORS}: true",
                remedy="Remove one of them.",
            )
        return self

    @cached_property
    def slice_format(self) -> SliceFormat:
        """How the files of slices are read."""
        return self.format or SliceFormat(kind=self.bronze_format)

    def naive_zone(self, lake: str) -> str | None:
        """Return the time zone of times without an offset; None if these are no instants.

        Args:
            lake: The lake's time zone.
        """
        return {"lake": lake, "utc": "UTC", "refuse": None}[self.naive_times]

    @property
    def slice_time(self) -> str | None:
        """The expression over a slice that gives its processing time; None if the clock or a column does."""
        text = self.time.strip() if isinstance(self.time, str) else OF_NOW
        if text.lower() == OF_NOW:
            return None
        if text.lower() == OF_NAME:
            return NAMED_TIME
        return text if "$" in text else f"${{slice.date('{text}')}}"

    @property
    def time_column(self) -> str | None:
        """The column whose latest value is the processing time of a slice; None if something else is."""
        return self.time.column if isinstance(self.time, TimeColumn) else None

    @property
    def asserts_absence(self) -> bool:
        """Whether a slice deletes the records of older slices that it lacks."""
        return self.delete_missing and self.delete_scope != "closed"

    @property
    def silver_properties(self) -> Mapping[str, str]:
        """The properties of its table: what an undo and its readers need, and those declared, which win."""
        known = {DELETION_VECTORS: "false"} if self.readers == "any" else {}
        if self.undo_window is None:
            return {**known, **self.table_properties}
        days = int(self.undo_window.removesuffix("d"))
        kept = {
            "delta.deletedFileRetentionDuration": f"interval {days} days",
            "delta.logRetentionDuration": f"interval {max(days, LOG_DAYS)} days",
        }
        return {**known, **kept, **self.table_properties}


class EntityKeys(SnakeModel):
    """The keys beside the settings that an entity has in both of its forms."""

    description: str | None = Field(default=None, description="What a row describes.")
    group: str | None = Field(default=None, description="Group of entities, for `-t tag:group=NAME`.")
    connectiongroup: str | None = Field(
        default=None, description="Group of source systems, for `-t tag:connectiongroup=NAME`."
    )
    moved_from: str = Field(
        default="",
        description="The name that it had before; its table stays where it is.",
    )
    destination: str = Field(default="", description="Name of the silver table.")
    enabled: bool = Field(default=True, description="Whether the entity is processed.")
    secure: bool = Field(
        default=False, description="Whether its folders have the lake's suffix for secure data."
    )
    after: Listed[str] = Field(
        default=(), description="Applications, `name[:instance]`, that must process a slice first."
    )
    watermark: Listed[Watermark] = Field(
        default=(), description="Columns that show how far slices were processed."
    )
    transformations: Injections = Field(
        default=(),
        description="Lists of Spark SQL expressions, or column and expression, applied before all else.",
    )


class SourceConnection(Named):
    """A source system as Datalake Foundation declares it: settings that its entities inherit."""

    model_config = ConfigDict(alias_generator=None)

    enabled: bool = Field(default=True, description="Whether its entities are processed.")
    settings: dict[str, Any] = Field(default_factory=dict, description="Settings of all its entities.")
    description: str | None = Field(default=None, description="What it is.")
