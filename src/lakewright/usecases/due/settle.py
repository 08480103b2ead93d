"""Record which targets are settled and which entities calm, so that no plan looks at all of them again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.manifest.store import Write
from lakewright.usecases.due.observe import settling_entities
from lakewright.usecases.due.observe_outputs import OutputObserver

if TYPE_CHECKING:
    from lakewright.app import App

__all__ = ["settle"]

log = logging.getLogger(__name__)


def settle(app: App) -> None:
    """Record which targets are settled and which entities calm; if it fails, plans look at everything."""
    try:
        with app.lake.observing():
            puts = [*settling_entities(app), *OutputObserver(app).settling()]
        for outcome in app.store.write_many(Write(puts=(put,)) for put in puts):
            if isinstance(outcome, LakewrightError):
                log.debug("something has moved meanwhile: %s", outcome)
    except LakewrightError as error:
        log.debug("what is settled is not known: %s", error)
