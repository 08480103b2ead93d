"""Arguments of the API's methods are checked by their annotations, before anything else happens."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Mapping
from functools import cache, wraps
from reprlib import repr as short
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from lakewright.api.arguments import of_numpy
from lakewright.errors import UsageError

__all__ = ["checked", "checked_methods"]

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


def checked_methods(cls: C) -> C:
    """Make each public method of a class refuse arguments of types that its annotations do not have."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod):
            setattr(cls, name, classmethod(checked(member.__func__)))
        elif inspect.isfunction(member):
            setattr(cls, name, checked(member))
    return cls


def checked(method: F) -> F:
    """Make a method raise `UsageError` if an argument is not of the type that its annotation has.

    Numbers, texts and booleans of numpy are given to the method as Python's.

    Only the outermost type is checked: that `targets` is a collection, not that of texts. What exists for
    type checkers only, such as `DataFrame`, may be anything.
    """
    signature = inspect.signature(method)

    @cache
    def hints() -> Mapping[str, Any]:
        return get_type_hints(method, localns=_Names(method.__globals__))

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # a call that names or counts its arguments wrongly: Python says so
            return method(*args, **kwargs)
        for name, value in bound.arguments.items():
            parameter = signature.parameters[name]
            if parameter.kind is parameter.VAR_KEYWORD or name not in hints():
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                found = bound.arguments[name] = tuple(map(of_numpy, value))
            else:
                found = (of_numpy(value),)
                (bound.arguments[name],) = found
            for each in found:
                _check(method, name, each, hints()[name])
        return method(*bound.args, **bound.kwargs)

    return call  # type: ignore[return-value]


class _Names(dict[str, Any]):
    """The names of a module, with `object` for those that it imports for type checkers only."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, object)


def _check(method: Callable[..., Any], name: str, value: object, hint: Any) -> None:
    accepted = _classes(hint)
    if isinstance(value, accepted) and (type(value) is not bool or not {bool, object}.isdisjoint(accepted)):
        return
    called = method.__qualname__.removesuffix(".__init__")
    *first, last = ("None" if each is type(None) else each.__name__ for each in accepted)
    known = f"{', '.join(first)} or {last}" if first else last
    raise UsageError(
        f"{called}: {name}={short(value)} is of type {type(value).__name__}, not {known}",
        remedy=f"help(lakewright.{called}) explains the arguments.",
    )


def _classes(hint: Any) -> tuple[type, ...]:
    if get_origin(hint) in (Union, UnionType):
        return tuple(found for each in get_args(hint) for found in _classes(each))
    found = get_origin(hint) or hint
    return (object if getattr(found, "_is_protocol", False) else found,)
