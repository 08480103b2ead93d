"""Calls and properties in expressions.

They are looked up in the tables of `namespaces.py` and `methods.py`, never as Python attributes, so an
expression has access to nothing else.
"""

from __future__ import annotations

from lakewright.errors import SpecError
from lakewright.spec.expressions.function import EvaluationContext, Function, Functions, Namespace
from lakewright.spec.expressions.methods import METHODS
from lakewright.spec.expressions.namespaces import NAMESPACES
from lakewright.spec.suggestions import suggestion

__all__ = ["call", "call_problem", "read_property"]


def call(target: object, method: str, arguments: tuple[object, ...], context: EvaluationContext) -> object:
    """Return the result of a method of a value, or of a function of a helper.

    Raises:
        SpecError: There is no such method, or it does not accept the arguments.
    """
    table = _table(target)
    function = table.get(method)
    where = f"{target.name}.{method}" if isinstance(target, Namespace) else f"{method} of {_kind(target)}"
    if function is None:
        raise SpecError.of(f"there is no {where} in expressions", remedy=suggestion(method, table))
    if why := _count_problem(where, function, len(arguments), is_method=not isinstance(target, Namespace)):
        raise SpecError.of(why)
    try:
        given = arguments if isinstance(target, Namespace) else (target, *arguments)
        return function.call(context, *given) if function.needs_context else function.call(*given)
    except (ValueError, OverflowError, ArithmeticError, OSError) as error:
        raise SpecError.of(f"{where}: {error}") from error


def call_problem(helper: str | None, method: str, count: int) -> str | None:
    """Return why a call fails for every value of its arguments, or None if it may succeed.

    Args:
        helper: The helper of the function, or None for a method of a value of any type.
        method: The called method or function.
        count: The number of arguments.
    """
    tables = [NAMESPACES[helper].functions] if helper else [table for _, _, table in METHODS]
    where = f"{helper}.{method}" if helper else method
    found = [table[method] for table in tables if method in table]
    if not found:
        hint = suggestion(method, {name for table in tables for name in table}, shown=0)
        return f"there is no {where} in expressions{f' ({hint})' if hint else ''}"
    wrong = [_count_problem(where, function, count, is_method=helper is None) for function in found]
    return wrong[0] if all(wrong) else None


def _count_problem(where: str, function: Function, count: int, *, is_method: bool) -> str | None:
    """Return why a number of arguments is wrong, or None. The value that has the method does not count."""
    least, most = function.least - is_method, function.most - is_method
    if least <= count <= most:
        return None
    taken = str(most) if least == most else f"{least} to {most}"
    return f"{where} takes {taken} argument{'' if most == 1 else 's'}, not {count}"


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
    if isinstance(target, Namespace) and name in target.properties:
        return target.properties[name]
    getter = f"get{name[:1].upper()}{name[1:]}"
    if not isinstance(target, Namespace) and getter in _table(target):
        return call(target, getter, (), context)
    known = target.properties if isinstance(target, Namespace) else ()
    raise SpecError.of(
        f"{_kind(target)} has no property {name!r}",
        remedy=suggestion(name, known) or f"Write ${{{written}}}.{name} to put that text after the value.",
    )


def _kind(target: object) -> str:
    if isinstance(target, Namespace):
        return repr(target.name)
    return next((name for kind, name, _ in METHODS if isinstance(target, kind)), type(target).__name__)


def _table(target: object) -> Functions:
    if isinstance(target, Namespace):
        return target.functions
    return next((table for kind, _, table in METHODS if isinstance(target, kind)), {})
