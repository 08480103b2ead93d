"""Selection of targets by name, dependencies, label, kind or last status.

| text | selects |
|---|---|
| `regions`, `regions.*` | targets whose whole name the regular expression matches |
| `+regions` | the same, and everything that they depend on |
| `regions+` | the same, and everything that depends on them |
| `tag:nightly`, `tag:team=sales` | targets with that label in `metadata.labels` |
| `tag:group=AVW`, `tag:connectiongroup=erp` | entity targets whose entity is of that group |
| `kind:entity` | targets of that kind |
| `state:failed` | targets that failed, were blocked or were not reached in the last run |

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (active targets); the forms are those of dbt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakewright.errors import Fault, SpecError
from lakewright.spec.suggestions import suggestion

_FOLLOWED = re.compile(r"(?:[\w-]+|(?:tag|kind|state):.+)\+")
"""Matches a trailing `+` that selects dependents. Elsewhere, `+` belongs to a regular expression."""


@dataclass(frozen=True, slots=True)
class Selectable:
    """A target that can be selected.

    Attributes:
        name: Name of the target.
        kind: Its kind.
        labels: `key` and `key=value` of each of its labels.
        sources: Names of the targets that it depends on.
    """

    name: str
    kind: str
    labels: frozenset[str] = frozenset()
    sources: frozenset[str] = field(default=frozenset())


def select(texts: Sequence[str], targets: Sequence[Selectable], *, undone: frozenset[str]) -> frozenset[str]:
    """Return the names of the targets that any of the texts selects, or all names if there are no texts.

    Args:
        texts: Selectors as in the table above.
        targets: The targets of a job.
        undone: Names of the targets that the last run did not finish, for `state:failed`.

    Raises:
        SpecError: A selector is malformed or selects nothing.
    """
    names = frozenset(target.name for target in targets)
    if not texts:
        return names
    upwards = {target.name: target.sources & names for target in targets}
    downwards = {name: frozenset(n for n, sources in upwards.items() if name in sources) for name in names}
    faults: list[Fault] = []
    found: set[str] = set()
    for text in texts:
        try:
            selected = _selected(text, targets, upwards, downwards, undone)
        except ValueError as error:
            faults.append(Fault(f"{text!r}: {error}", code="usage"))
            continue
        if not selected and text != "state:failed":
            faults.append(
                Fault(f"{text!r} selects no target of the job", remedy=suggestion(text, names), code="usage")
            )
        found |= selected
    if faults:
        raise SpecError(faults)
    return frozenset(found)


def _selected(
    text: str,
    targets: Sequence[Selectable],
    upwards: Mapping[str, frozenset[str]],
    downwards: Mapping[str, frozenset[str]],
    undone: frozenset[str],
) -> set[str]:
    core = text.removeprefix("+")
    is_with_sources = core != text
    is_with_dependents = _FOLLOWED.fullmatch(core) is not None
    if is_with_dependents:
        core = core[:-1]
    found = _matching(core, targets, undone)
    above = _closure(upwards, found) if is_with_sources else set()
    below = _closure(downwards, found) if is_with_dependents else set()
    return found | above | below


def _matching(text: str, targets: Iterable[Selectable], undone: frozenset[str]) -> set[str]:
    method, separator, value = text.partition(":")
    tests: Mapping[str, Callable[[Selectable], bool]] = {
        "tag": lambda target: value in target.labels,
        "kind": lambda target: target.kind == value,
        "state": lambda target: target.name in undone,
    }
    if separator and method in tests:
        if method == "state" and value != "failed":
            raise ValueError("the only state is failed")
        return {target.name for target in targets if tests[method](target)}
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return {target.name for target in targets if pattern.fullmatch(target.name)}


def _closure(edges: Mapping[str, frozenset[str]], start: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        for name in edges[waiting.pop()]:
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return seen
