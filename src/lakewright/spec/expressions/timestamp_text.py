"""Timestamps as text: Flowman's form has no offset, so what reads an instant must know that it is in UTC."""

from __future__ import annotations

from datetime import datetime

from lakewright.spec.expressions.values import render_value

__all__ = ["TimestampText", "render_alone", "with_offset"]


class TimestampText(str):
    """A timestamp that was rendered alone: `2022-11-01T06:00:00.0`, in UTC."""

    __slots__ = ()


def render_alone(value: object) -> str:
    """Return the text of a value that no other text surrounds; of a timestamp, a `TimestampText`."""
    if isinstance(value, TimestampText):
        return value
    text = render_value(value)
    return TimestampText(text) if isinstance(value, datetime) and value.tzinfo else text


def with_offset(text: str) -> str:
    """Return a text with the offset that a rendered timestamp lacks; other texts are unchanged.

    Example:
        >>> from datetime import UTC
        >>> with_offset(render_alone(datetime(2022, 11, 1, 6, tzinfo=UTC))), with_offset("2022-11-01T06:00")
        ('2022-11-01T06:00:00.0Z', '2022-11-01T06:00')
    """
    return f"{text}Z" if isinstance(text, TimestampText) else text
