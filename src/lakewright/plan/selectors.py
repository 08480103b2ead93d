"""Choosing targets by name, neighbours, label, kind or how they last ended.

| text | chooses |
|---|---|
| `regions`, `regions.*` | targets whose whole name the regular expression matches |
| `+regions` | and everything that it depends on |
| `regions+` | and everything that depends on it |
| `tag:nightly`, `tag:team=sales` | targets with that label in `metadata.labels` |
| `tag:group=AVW`, `tag:connectiongroup=erp` | entity targets whose entity is of that group |
| `kind:entity` | targets of that kind |
| `state:failed` | targets that failed, were blocked or not reached in the last run |

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (active targets); the forms are those of dbt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakewright.errors import Fault, SpecError
from lakewright.spec.suggestions import suggestion

__all__ = ["Selectable", "select"]

_FOLLOWED = re.compile(r"(?:[\w-]+|(?:tag|kind|state):.+)\+")
"""A plus sign after a plain name is the graph's; in other places it is a regular expression's."""


@dataclass(frozen=True, slots=True)
class Selectable:
    """A target that can be chosen.

    Attributes:
        labels: `key` and `key=value` of each label.
        sources: Targets that it depends on.
    """

    name: str
    kind: str
    labels: frozenset[str] = frozenset()
    sources: frozenset[str] = field(default=frozenset())


def select(texts: Sequence[str], choices: Sequence[Selectable], *, undone: frozenset[str]) -> frozenset[str]:
    """Return the names that any of the texts chooses; all of them where there is no text.

    Args:
        texts: As in the table above.
        choices: The targets of a job.
        undone: Names that the last run left undone, for `state:failed`.

    Raises:
        SpecError: A text is no such form, or chooses nothing.
    """
    names = frozenset(choice.name for choice in choices)
    if not texts:
        return names
    upwards = {choice.name: choice.sources & names for choice in choices}
    downwards = {name: frozenset(n for n, sources in upwards.items() if name in sources) for name in names}
    faults: list[Fault] = []
    found: set[str] = set()
    for text in texts:
        try:
            chosen = _chosen(text, choices, upwards, downwards, undone)
        except ValueError as error:
            faults.append(Fault(f"{text!r}: {error}", code="usage"))
            continue
        if not chosen and text != "state:failed":
            faults.append(
                Fault(f"{text!r} chooses no target of the job", remedy=suggestion(text, names), code="usage")
            )
        found |= chosen
    if faults:
        raise SpecError(faults)
    return frozenset(found)


def _chosen(
    text: str,
    choices: Sequence[Selectable],
    upwards: Mapping[str, frozenset[str]],
    downwards: Mapping[str, frozenset[str]],
    undone: frozenset[str],
) -> set[str]:
    core = text.removeprefix("+")
    is_with_sources = core != text
    is_with_dependents = _FOLLOWED.fullmatch(core) is not None
    if is_with_dependents:
        core = core[:-1]
    found = _matching(core, choices, undone)
    above = _closure(upwards, found) if is_with_sources else set()
    below = _closure(downwards, found) if is_with_dependents else set()
    return found | above | below


def _matching(text: str, choices: Iterable[Selectable], undone: frozenset[str]) -> set[str]:
    method, separator, value = text.partition(":")
    tests: Mapping[str, Callable[[Selectable], bool]] = {
        "tag": lambda choice: value in choice.labels,
        "kind": lambda choice: choice.kind == value,
        "state": lambda choice: choice.name in undone,
    }
    if separator and method in tests:
        if method == "state" and value != "failed":
            raise ValueError("the only state is failed")
        return {choice.name for choice in choices if tests[method](choice)}
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from error
    return {choice.name for choice in choices if pattern.fullmatch(choice.name)}


def _closure(edges: Mapping[str, frozenset[str]], start: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        for name in edges[waiting.pop()]:
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return seen
