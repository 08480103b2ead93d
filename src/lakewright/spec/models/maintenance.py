"""How an entity's silver table is kept in shape between slices.

Source: Delta's documentation, "Optimizations" (compaction) and "Remove unused data files" (vacuum); when each
is worth its while is Lakewright's own.
"""

from __future__ import annotations

from pydantic import Field

from lakewright.spec.models.base import SnakeModel

__all__ = ["Maintenance"]

MIB = 1 << 20


class Maintenance(SnakeModel):
    """When files of a silver table are brought together, after slices were processed.

    A file as large as `file_mib` is only rewritten for its marked rows, so that versions which ended long ago
    stay where they are.
    """

    enabled: bool = Field(default=True, description="Whether runs do it; `lakewright maintain` always does.")
    small_files: int = Field(
        default=20, ge=2, description="So many small files in one partition are brought together."
    )
    file_mib: int = Field(
        default=64, ge=1, description="Size in MiB from which a file isn't small, and which new ones aim at."
    )
    marked_rows: float = Field(
        default=0.2,
        gt=0,
        lt=1,
        description="More rows than this part marked as replaced, in place of removed, are cleared out.",
    )
    vacuum: bool = Field(
        default=False,
        description="Whether files that no version of the last week needs are removed then "
        "(`delta.deletedFileRetentionDuration` among the table's properties sets another time).",
    )

    @property
    def file_bytes(self) -> int:
        """Size from which a file isn't small."""
        return self.file_mib * MIB
