"""Text that names commands and options as values, which each surface shows as its users write them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any, Self


class Placeholder(str):
    """A word of a command that the user replaces, such as `<name>`, so that it is not quoted for a shell."""

    __slots__ = ()


class ShellLine(str):
    """A line to type in a shell, such as `mv a b`. Phrases show it in backticks."""

    __slots__ = ()


class Command(ShellLine):
    """A command of Lakewright. As text, it is the line to type, without backticks.

    Attributes:
        argv: The words after `lakewright`.

    Example:
        >>> Command("manifest", "skip", "orders/d 1")
        "lakewright manifest skip 'orders/d 1'"
        >>> Command("status").argv
        ('status',)
    """

    __slots__ = ("argv",)
    argv: tuple[str, ...]

    def __new__(cls, *argv: str) -> Self:
        """Return the command with these words."""
        typed = (str(word) if isinstance(word, Placeholder) else shlex.quote(word) for word in argv)
        made = super().__new__(cls, " ".join(("lakewright", *typed)))
        made.argv = argv
        return made

    def __getnewargs__(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return what copies and other processes make the command of."""
        return self.argv

    def plus(self, *more: str) -> Command:
        """Return the command with more words at its end."""
        return Command(*self.argv, *more)

    @classmethod
    def of_json(cls, words: Iterable[Any]) -> Command:
        """Return the command that was recorded as these words."""
        return cls(*(Placeholder(word[0]) if isinstance(word, list) else str(word) for word in words))

    def as_json(self) -> list[Any]:
        """Return the words as they are recorded; a placeholder is a list of its own."""
        return [[str(word)] if isinstance(word, Placeholder) else str(word) for word in self.argv]


class Option(str):
    """An option or argument that a sentence names. As text, it is what is typed.

    Attributes:
        python: What a caller in Python writes instead; None if the option is one of those that have a known
            argument in Python.
    """

    __slots__ = ("python",)
    python: str | None

    def __new__(cls, typed: str, python: str | None = None) -> Self:
        """Return the option that is typed so."""
        made = super().__new__(cls, typed)
        made.python = python
        return made

    def __getnewargs__(self) -> tuple[str, str | None]:  # type: ignore[override]
        """Return what copies and other processes make the option of."""
        return str(self), self.python


class Phrase(str):
    """A text that knows which of its parts are commands and options.

    It is a string: its plain text, with commands in backticks. An f-string keeps nothing else, so that
    whatever adds text to a phrase uses `Phrase` or `+`.

    Attributes:
        parts: Literal text, commands and options in order.

    Example:
        >>> Phrase("Mend it, then ", Command("manifest", "resolve", "orders/d1"), ".")
        'Mend it, then `lakewright manifest resolve orders/d1`.'
    """

    __slots__ = ("parts",)
    parts: tuple[str, ...]

    def __new__(cls, *parts: str) -> Self:
        """Return these parts as one text; phrases among them bring their own parts."""
        flat = tuple(each for part in parts for each in _parts_of(part) if each)
        text = (f"`{each}`" if isinstance(each, ShellLine) else each for each in flat)
        made = super().__new__(cls, "".join(text))
        made.parts = flat
        return made

    @classmethod
    def joined(cls, separator: str, parts: Iterable[str]) -> Self:
        """Return texts and commands with a separator between them.

        Example:
            >>> Phrase.joined(", then ", (Command("status"), Command("history")))
            '`lakewright status`, then `lakewright history`'
        """
        found: list[str] = []
        for part in parts:
            found += [separator, part] if found else [part]
        return cls(*found)

    @classmethod
    def of_json(cls, parts: Iterable[Any]) -> Phrase:
        """Return the text that was recorded as these parts."""
        return cls(*(Command.of_json(each["command"]) if isinstance(each, dict) else each for each in parts))

    def as_json(self) -> list[Any]:
        """Return the parts as they are recorded; of options and lines of other programs, their text."""
        return [
            {"command": each.as_json()}
            if isinstance(each, Command)
            else f"`{each}`"
            if isinstance(each, ShellLine)
            else str(each)
            for each in self.parts
        ]

    def __getnewargs__(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return what copies and other processes make the text of."""
        return self.parts

    def __add__(self, other: str) -> Phrase:
        """Return this text with another one after it."""
        return Phrase(self, other)

    def __radd__(self, other: str) -> Phrase:
        """Return this text after another one."""
        return Phrase(other, self)

    def lines(self) -> list[Phrase]:
        """Return the lines of the text."""
        lines: list[list[str]] = [[]]
        for part in self.parts:
            if isinstance(part, ShellLine | Option):
                lines[-1].append(part)
                continue
            first, *others = part.split("\n")
            lines[-1].append(first)
            lines += ([each] for each in others)
        return [Phrase(*each) for each in lines]

    def capitalized(self) -> Phrase:
        """Return the text with a capital first letter."""
        first, *others = self.parts or ("",)
        if isinstance(first, ShellLine | Option):
            return self
        return Phrase(first[:1].upper() + first[1:], *others)


def _parts_of(text: str) -> tuple[str, ...]:
    """Return the parts of a text; one without commands is its own only part."""
    return text.parts if isinstance(text, Phrase) else (text,)
