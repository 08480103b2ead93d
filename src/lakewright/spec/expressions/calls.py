"""Calls and properties in expressions, of helpers and of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakewright.errors import Fault, SpecError
from lakewright.spec.expressions.expression import Literal, Node
from lakewright.spec.expressions.functions import (
    ALONE,
    NAMESPACES,
    VALUES,
    EvaluationContext,
    Function,
    Namespace,
    functions_of,
)
from lakewright.spec.suggestions import meant, suggestion

DEPENDS_ON_VALUE = "depends_on_value"
"""Detail of faults that other values of the same type may not have."""

_METHODS = {word: functions_of(word) for word in VALUES}


def call(target: object, method: str, arguments: tuple[object, ...], context: EvaluationContext) -> object:
    """Return the result of a method of a value, or of a function of a helper.

    Raises:
        SpecError: There is no such method, or it does not accept the arguments.
    """
    is_helper, table = isinstance(target, Namespace), _table(target)
    function = table.get(method)
    where = f"{target.name}.{method}" if isinstance(target, Namespace) else f"{method} of {_kind(target)}"
    if function is None:
        raise SpecError.of(f"there is no {where} in expressions", remedy=suggestion(method, table))
    if why := function.count_problem(where, len(arguments)):
        raise SpecError.of(why)
    first = [context] if function.uses_context else [] if is_helper else [target]
    try:
        given = [kind.convert(each) for kind, each in zip(function.parameters, arguments, strict=False)]
        return function.call(*first, *given)
    except (ValueError, OverflowError, ArithmeticError, OSError) as error:
        raise SpecError([Fault(f"{where}: {error}", details={DEPENDS_ON_VALUE: True})]) from error


def call_function(name: str, arguments: tuple[object, ...]) -> object:
    """Return the result of a function that belongs to no helper.

    Raises:
        SpecError: It does not accept the arguments.
    """
    function = functions_of(ALONE)[name]
    if why := function.count_problem(name, len(arguments)):
        raise SpecError.of(why)
    if any(isinstance(argument, Namespace) for argument in arguments):
        raise SpecError.of(f"{name} takes a value, not a helper")
    return function.call(*arguments)


def call_problem(helper: str | None, method: str, arguments: Sequence[Node]) -> str | None:
    """Return why a call fails for every value of the names in it, or None if it may succeed.

    Args:
        helper: The helper of the function, or None for a method of a value of any type.
        method: The called method or function.
        arguments: The arguments as written.
    """
    tables = [NAMESPACES[helper].functions] if helper else [*_METHODS.values()]
    where = f"{helper}.{method}" if helper else method
    found = [table[method] for table in tables if method in table]
    if not found:
        hint = meant(method, {name for table in tables for name in table})
        return f"there is no {where} in expressions{f' ({hint})' if hint else ''}"
    wrong = [
        function.count_problem(where, len(arguments)) or _literal_problem(where, function, arguments)
        for function in found
    ]
    return wrong[0] if all(wrong) else None


def _literal_problem(where: str, function: Function, arguments: Sequence[Node]) -> str | None:
    """Return why a literal is no argument of a function, or None."""
    for kind, argument in zip(function.parameters, arguments, strict=False):
        try:
            if isinstance(argument, Literal):
                kind.convert(argument.value)
        except (ValueError, OverflowError) as error:
            return f"{where}: {error}"
    return None


def read_property(target: object, name: str, context: EvaluationContext, *, written: str = "name") -> object:
    """Return a property of a value. `$date.year` is `$date.getYear()`, as in Velocity.

    Args:
        target: The value.
        name: Name of the property.
        context: Context of a getter.
        written: The name of the value in the expression, for the error.

    Raises:
        SpecError: The value has no such property.
    """
    known: Mapping[str, object] = target.properties if isinstance(target, Namespace) else {}
    if name in known:
        return known[name]
    getter = f"get{name[:1].upper()}{name[1:]}"
    if not isinstance(target, Namespace) and getter in _table(target):
        return call(target, getter, (), context)
    raise SpecError.of(
        f"{_kind(target)} has no property {name!r}",
        remedy=suggestion(name, known) or f"Write ${{{written}}}.{name} to put that text after the value.",
        details={"unknown_property": name},
    )


def _kind(target: object) -> str:
    if isinstance(target, Namespace):
        return repr(target.name)
    word = _word(target)
    return f"a {word}" if word else type(target).__name__


def _word(value: object) -> str:
    return next((word for word, types in VALUES.items() if isinstance(value, types)), "")


def _table(target: object) -> Mapping[str, Function]:
    return target.functions if isinstance(target, Namespace) else _METHODS.get(_word(target), {})
