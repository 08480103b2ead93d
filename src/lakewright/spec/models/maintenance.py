"""Settings for the maintenance of silver tables: compaction and vacuum.

Source: Delta's documentation, "Optimizations" (compaction) and "Remove unused data files" (vacuum). The
thresholds are Lakewright's own.
"""

from __future__ import annotations

from pydantic import Field

from lakewright.spec.models.base import SnakeModel

MIB = 1 << 20


class Maintenance(SnakeModel):
    """When the files of a silver table are compacted after slices were processed.

    A file of at least `file_mib` is rewritten only to clear out its marked rows, so that versions that ended
    long ago stay where they are.
    """

    enabled: bool = Field(
        default=True, description="Whether runs do maintenance. `lakewright maintain` always does."
    )
    small_files: int = Field(
        default=20, ge=2, description="Small files in a partition from which they are compacted."
    )
    file_mib: int = Field(
        default=64, ge=1, description="Size in MiB below which files are small, and at which compaction aims."
    )
    marked_rows: float = Field(
        default=0.2,
        gt=0,
        lt=1,
        description="Share of rows in deletion vectors above which they are removed.",
    )
    vacuum: bool = Field(
        default=False,
        description="Whether files that no version of the last week needs are removed after a compaction. "
        "The table property `delta.deletedFileRetentionDuration` sets another time.",
    )

    @property
    def file_bytes(self) -> int:
        """Size in bytes below which a file is small."""
        return self.file_mib * MIB
