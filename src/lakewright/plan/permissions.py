"""Permissions that the operator gives to a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Permissions:
    """Actions that a run may take although they are refused by default.

    The command line or the Python API creates it once; it is passed on unchanged.

    Attributes:
        allow_data_loss: Migrations may drop columns that hold values, Full may replace the rows of another
            strategy, and a repair may remove duplicate rows.
        allow_backdated: A processing time may be earlier than the newest version in the table.
        allow_late: A slice may be applied although a later one is already processed.
        allow_deletes: A slice may delete more rows that it lacks than the entity's brake allows.
    """

    allow_data_loss: bool = False
    allow_backdated: bool = False
    allow_late: bool = False
    allow_deletes: bool = False


NO_PERMISSIONS = Permissions()
"""The permissions of a run that was given none."""
