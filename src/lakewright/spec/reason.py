"""Reasons: a code with parameters, which is a text only where somebody reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lakewright.errors.phrase import Phrase
from lakewright.spec.words import filled


class ReasonCode(StrEnum):
    """The base of codes. Codes are an API: they never change their meaning.

    Attributes:
        template: What a code says, with the names of its parameters in braces, as `filled` reads it.
    """

    _value_: str
    template: str

    def __new__(cls, value: str, template: str) -> ReasonCode:
        """Return the code with this template."""
        made = str.__new__(cls, value)
        made._value_ = value
        made.template = template
        return made


@dataclass(frozen=True, slots=True)
class Reason:
    """Why, as a code with parameters, which JSON can hold. `str(reason)` is its text."""

    code: ReasonCode
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def text(self) -> Phrase:
        """The reason as a part of a sentence."""
        return filled(self.code.template, self.params)

    def __str__(self) -> str:
        return str(self.text)


def reasons_text(reasons: Iterable[Reason]) -> Phrase:
    """Return reasons as one line."""
    return Phrase.joined("; ", (each.text for each in reasons))


def reasons_document(reasons: Iterable[Reason]) -> dict[str, Any]:
    """Return what the JSON of a step or a result has of its reasons: their texts, and their codes beside."""
    listed = list(reasons)
    return {"reasons": [str(each) for each in listed], "reason_codes": listed}
