"""The tables of the functions that expressions can call."""

from __future__ import annotations

from lakewright.spec.expressions.functions import ALONE, FUNCTIONS, VALUES, Function

__all__ = ["function_table"]


def function_table(name: str) -> str:
    """Return the table of the functions of helpers, or of the methods of values."""
    is_of_values = name == "values"
    head = (
        "| value | method | result |\n|---|---|---|" if is_of_values else "| function | result |\n|---|---|"
    )
    rows = (_row(each) for each in FUNCTIONS if (each.receiver in VALUES) is is_of_values)
    return "\n".join((head, *rows))


def _row(function: Function) -> str:
    least = len(function.parameters) - function.optional
    words = [kind.word if at < least else f"[{kind.word}]" for at, kind in enumerate(function.parameters)]
    call = f"{function.name}({', '.join(words)})"
    if function.receiver in VALUES:
        return f"| {function.receiver} | `{call}` | {function.result.word} |"
    helper = "" if function.receiver == ALONE else f"{function.receiver}."
    return f"| `{helper}{call}` | {function.result.word} |"
