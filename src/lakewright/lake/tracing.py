"""Spans of OpenTelemetry: a run, in it its targets, their slices and commits.

Only the API is used, and only if the process uses OpenTelemetry: something has imported it, or an `OTEL_`
variable is set. The SDK, which sends spans, is the user's. Whatever it raises is not an error of the run.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

from lakewright.manifest.payload import text_of

log = logging.getLogger(__name__)


@contextmanager
def span(name: str, **attributes: object) -> Iterator[Span]:
    """Record the block as a span below that of the caller; without OpenTelemetry, do nothing.

    An error that leaves the block is recorded and makes the span one of an error.

    Args:
        name: Such as `run daily`.
        attributes: Values by their names after `lakewright.`; None is left out.
    """
    own, ending = Span(), ExitStack()
    if _is_used():
        with _quietly():
            from opentelemetry.trace import get_tracer

            context = get_tracer("lakewright").start_as_current_span(
                name,
                attributes=_attributes(attributes),
                record_exception=False,
                set_status_on_exception=False,
            )
            own.otel = ending.enter_context(context)
    try:
        yield own
    except BaseException as error:
        own.fail(text_of(error), error)
        raise
    finally:
        with _quietly():
            ending.close()


class Span:
    """A span that is being recorded, or nothing.

    Attributes:
        otel: The span of OpenTelemetry; None without it.
    """

    def __init__(self) -> None:
        self.otel: Any = None

    def note(self, **attributes: object) -> None:
        """Add attributes."""
        if self.otel is not None:
            with _quietly():
                self.otel.set_attributes(_attributes(attributes))

    def fail(self, message: str, error: BaseException | None = None) -> None:
        """Make the span one of an error."""
        if self.otel is None:
            return
        with _quietly():
            from opentelemetry.trace import Status, StatusCode

            if error is not None:
                self.otel.record_exception(error)
            self.otel.set_status(Status(StatusCode.ERROR, message))


@contextmanager
def _quietly() -> Iterator[None]:
    """Log what OpenTelemetry raises in the block: a span must not fail what it is about."""
    try:
        yield
    except Exception as error:
        _warn_once(f"{type(error).__name__}: {error}")


@cache
def _warn_once(text: str) -> None:
    log.warning("OpenTelemetry: spans could not be recorded: %s", text)


def _attributes(values: dict[str, object]) -> dict[str, Any]:
    known = {name: value for name, value in values.items() if value is not None}
    return {
        f"lakewright.{name}": value if isinstance(value, bool | int | float) else str(value)
        for name, value in known.items()
    }


def _is_used() -> bool:
    if "opentelemetry.trace" in sys.modules:
        return True
    return any(name.startswith("OTEL_") for name in os.environ) and _is_installed()


@cache
def _is_installed() -> bool:
    return find_spec("opentelemetry") is not None
