"""Arguments of the API's methods are checked by their annotations, before anything else happens."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from reprlib import repr as short
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin

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

    Only the outermost type is checked: that `targets` is a collection, not that of texts. An annotation that
    exists for type checkers only, such as `DataFrame`, is not checked.
    """
    signature = inspect.signature(method)

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # a call that names or counts its arguments wrongly: Python says so
            return method(*args, **kwargs)
        for name, value in bound.arguments.items():
            parameter = signature.parameters[name]
            if parameter.kind is parameter.VAR_KEYWORD or parameter.annotation is parameter.empty:
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                found = bound.arguments[name] = tuple(map(of_numpy, value))
            else:
                found = (of_numpy(value),)
                (bound.arguments[name],) = found
            for each in found:
                _check(method, name, each, parameter.annotation)
        return method(*bound.args, **bound.kwargs)

    return call  # type: ignore[return-value]


def _check(method: Callable[..., Any], name: str, value: object, annotation: str) -> None:
    try:
        hint = eval(annotation, method.__globals__)  # noqa: S307 the text of our own annotation
    except NameError:
        return
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
    if isinstance(hint, UnionType):
        return tuple(found for each in get_args(hint) for found in _classes(each))
    return (type(None) if hint is None else get_origin(hint) or hint,)
