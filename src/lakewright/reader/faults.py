"""What is wrong with a file, as a code with its place and parameters."""

from __future__ import annotations

__all__ = ["FileFault"]

_TEXTS = {
    "undecodable": "there are bytes that are not {encoding}",
    "open_quote": "a quote that is opened here isn't closed where its field ends",
    "mixed_ends": "its lines end in several ways: {ends}",
    "long_header": "its first record is longer than {size} bytes",
    "doubled_name": "its header has the column {name} twice",
    "nameless": "its header has no name for column {place}",
}


class FileFault(ValueError):
    """A file can't be read as it is declared to be written.

    Attributes:
        code: What is wrong.
        path: The file.
        line: The number of the line; None if it is not known.
        given: The parameters of the code.
    """

    def __init__(self, code: str, path: str, line: int | None = None, **given: str) -> None:
        self.code = code
        self.path = path
        self.line = line
        self.given = given
        place = path if line is None else f"{path}, line {line}"
        super().__init__(f"{place}: {_TEXTS[code].format(**given)}")
