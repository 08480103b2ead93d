"""Styles of names that consist of several words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from lakewright.spec.models.base import from_text
from lakewright.spec.suggestions import member_named

__all__ = ["Naming", "NamingText"]

_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\-\s]+")


class Naming(StrEnum):
    """Style in which words are joined."""

    SNAKE_CASE = "snakeCase"
    CAMEL_CASE = "camelCase"
    CAMEL_CASE_UPPER = "camelCaseUpper"

    def joined(self, parts: Sequence[str]) -> str:
        """Return the parts joined to one name; the parts themselves are not changed.

        Example:
            >>> Naming.SNAKE_CASE.joined(["someOrder", "id"]), Naming.CAMEL_CASE.joined(["some_order", "id"])
            ('someOrder_id', 'some_orderId')
        """
        if self is Naming.SNAKE_CASE:
            return "_".join(parts)
        first, *rest = parts
        head = _capital(first) if self is Naming.CAMEL_CASE_UPPER else first
        return head + "".join(map(_capital, rest))

    def rename(self, name: str) -> str:
        """Return the name in this style, regardless of its current style.

        Example:
            >>> [naming.rename("someHTTPOrder_id") for naming in Naming]
            ['some_http_order_id', 'someHttpOrderId', 'SomeHttpOrderId']
        """
        words = [word.lower() for word in _BORDER.split(name) if word]
        return self.joined(words) if words else name


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]


NamingText = Annotated[Naming, from_text(lambda text: member_named(Naming, text) or text)]
