"""Record which targets are settled, so that the next plan does not look at their builds again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.manifest.store import Write
from lakewright.usecases.due.observe_outputs import OutputObserver

if TYPE_CHECKING:
    from lakewright.app import App

__all__ = ["settle"]

log = logging.getLogger(__name__)


def settle(app: App) -> None:
    """Record which targets are settled. Of a target for which that fails, all builds are looked at again."""
    try:
        with app.lake.observing():
            puts = list(OutputObserver(app).settling())
        for outcome in app.store.write_many(Write(puts=(put,)) for put in puts):
            if isinstance(outcome, LakewrightError):
                log.debug("a target was built meanwhile: %s", outcome)
    except LakewrightError as error:
        log.debug("which targets are settled is not known: %s", error)
