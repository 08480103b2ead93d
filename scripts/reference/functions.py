"""The tables of the functions that expressions can call."""

from __future__ import annotations

from lakewright.spec.expressions.functions import ALONE, FUNCTIONS, VALUES, Function


def function_table(name: str) -> str:
    """Return the table of the functions of helpers, or of the methods of values."""
    is_of_values = name == "values"
    head = "| value | result | methods |" if is_of_values else "| helper | result | functions |"
    calls: dict[tuple[str, str], list[str]] = {}
    for each in FUNCTIONS:
        if (each.receiver in VALUES) is is_of_values:
            receiver = each.receiver if is_of_values or each.receiver == ALONE else f"`{each.receiver}`"
            calls.setdefault((receiver, each.result.word), []).append(_call(each))
    rows = (
        f"| {receiver} | {result} | {', '.join(listed)} |" for (receiver, result), listed in calls.items()
    )
    return "\n".join((head, "|---|---|---|", *rows))


def _call(function: Function) -> str:
    least = len(function.parameters) - function.optional
    words = [kind.word if at < least else f"[{kind.word}]" for at, kind in enumerate(function.parameters)]
    return f"`{function.name}({', '.join(words)})`"
