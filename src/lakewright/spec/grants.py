"""Grants: permissions of what destroys something, or costs much, which a person or a project gives."""

from __future__ import annotations

from enum import StrEnum


class Grant(StrEnum):
    """A permission of what destroys something, or costs much."""

    DATA_LOSS = "data_loss"
    DELETES = "deletes"
    BACKDATED = "backdated"
    FOREIGN = "foreign"
    REPLAY = "replay"
