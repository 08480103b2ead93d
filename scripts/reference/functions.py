"""The lists of the functions that expressions can call."""

from __future__ import annotations

from lakewright.spec.expressions.functions import ALONE, FUNCTIONS, VALUES, Function


def functions_by_receiver(name: str) -> str:
    """Return the functions of helpers, or the methods of values, each group with what it returns."""
    is_of_values = name == "values"
    calls: dict[str, dict[str, list[str]]] = {}
    for each in FUNCTIONS:
        if (each.receiver in VALUES) is is_of_values:
            receiver = each.receiver if is_of_values else f"`{each.receiver}`"
            receiver = "without a helper" if each.receiver == ALONE else receiver
            calls.setdefault(receiver, {}).setdefault(each.result.word, []).append(_call(each))
    return "\n".join(f"- {receiver}: {_grouped(groups)}" for receiver, groups in calls.items())


def _grouped(groups: dict[str, list[str]]) -> str:
    return "; ".join(f"{', '.join(listed)} → {result}" for result, listed in groups.items())


def _call(function: Function) -> str:
    least = len(function.parameters) - function.optional
    words = [kind.word if at < least else f"[{kind.word}]" for at, kind in enumerate(function.parameters)]
    return f"`{function.name}({', '.join(words)})`"
