"""Words that all pages share."""

from __future__ import annotations

import re

from lakewright.documentation.document import CheckResult, Ref

__all__ = ["CHAPTERS", "anchor", "counts_of", "where"]

CHAPTERS = {"target": "Targets", "entity": "Entities", "relation": "Relations", "mapping": "Mappings"}
"""Titles of the chapters, in their order."""


def counts_of(check: CheckResult) -> str:
    """Return how many rows are as they must be, and how many aren't.

    Example:
        >>> counts_of(CheckResult("notNull", "x is not null", passed=1200, failed=3))
        '1,200 passed, 3 failed'
    """
    if check.passed is None or check.failed is None:
        return ""
    return f"{check.passed:,} passed, {check.failed:,} failed"


def where(ref: Ref) -> str:
    """Return an item as a reader knows it.

    Example:
        >>> where(Ref("relation", "prices"))
        'relation prices'
    """
    return f"{ref.category} {ref.name}"


def anchor(ref: Ref) -> str:
    """Return the name of an item's place on the page, whatever its own name holds.

    Example:
        >>> anchor(Ref("relation", 'a "b"'))
        'relation-a~20~22b~22'
    """
    return f"{ref.category}-{re.sub(r'[^A-Za-z0-9_.-]', lambda found: f'~{ord(found[0]):x}', ref.name)}"
