"""Titles, names and counts that all page formats share."""

from __future__ import annotations

import re

from lakewright.checks.check import CheckResult
from lakewright.checks.count import Sample
from lakewright.documentation.document import Ref

CHAPTERS = {"target": "Targets", "entity": "Entities", "relation": "Relations", "mapping": "Mappings"}
"""Titles of the chapters by category, in their order on the page."""


def counts_of(check: CheckResult) -> str:
    """Return the number of rows that passed and failed a check; empty if nothing was counted.

    Example:
        >>> counts_of(CheckResult("notNull", "x is not null", passed=1200, failed=3))
        '1,200 passed, 3 failed'
    """
    if check.passed is None or check.failed is None:
        return ""
    return f"{check.passed:,} passed, {check.failed:,} failed"


def left_out_of(sample: Sample) -> str:
    """Return which columns of failing rows are not shown; empty if all are.

    Example:
        >>> left_out_of(Sample(("a",), (("1",),), left_out=("b", "c")))
        'not shown: b, c'
    """
    return f"not shown: {', '.join(sample.left_out)}" if sample.left_out else ""


def where(ref: Ref) -> str:
    """Return an item with its category.

    Example:
        >>> where(Ref("relation", "prices"))
        'relation prices'
    """
    return f"{ref.category} {ref.name}"


def anchor(ref: Ref) -> str:
    """Return the anchor of an item; characters that are unsafe in an id are encoded.

    Example:
        >>> anchor(Ref("relation", 'a "b"'))
        'relation-a~20~22b~22'
    """
    return f"{ref.category}-{re.sub(r'[^A-Za-z0-9_.-]', lambda found: f'~{ord(found[0]):x}', ref.name)}"
