"""Lines of text files: their ends, and line breaks inside quotes.

Spark takes line feeds, carriage returns and pairs of both for ends of lines unless it knows better, and reads
a file in one task if fields may hold line breaks. So a file is looked at first, in one pass without Spark;
most need nothing. Of files that Python cannot read, those in other systems or compressions, one query of
Spark finds which need a closer look.

Source: RFC 4180, section 2 (fields in quotes may hold line breaks, and quotes that are doubled).
"""

from __future__ import annotations

import codecs
import io
import mmap
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import unquote

from lakewright.lake.file_probe import DAMAGED, begin_of_text, is_examinable, is_near, opened
from lakewright.lake.files import Files
from lakewright.lake.paths import local_path, parent
from lakewright.reader.source import FileFault, Form, Reading
from lakewright.schema.sql import text_sql

_SIZES = (1 << 16, 1 << 22)
"""How much of a distant file is read to find its first record: the second size if the first is too small."""

_COPIED = 1 << 22
"""Bytes of a file that are copied at once."""

_AT_ONCE = 16
"""Files whose beginning is read at once: an object store takes tens of milliseconds for each."""

_BLOCK = 1 << 20
_LONGEST_RECORD = 1 << 25
"""Bytes in which the first record of a file must end."""

_ANY = ("iso8859-1", None)
"""Encodings of which every byte is a character, and those that only Java knows."""

_LF, _CRLF, _CR = b"\n", b"\r\n", b"\r"
_NUL = b"\0"
_NAMES = {_LF: "LF", _CRLF: "CR LF", _CR: "CR"}
_BREAK = re.compile(rb"\r\n|\n|\r")
_INVISIBLE = re.compile(rb"[\r\n][\x00-\x09\x0b\x0c\x0e-\x20]+(?=[\r\n])")
_SPACES = bytes(range(ord(" ") + 1))


class FirstRecord(NamedTuple):
    """The first record of a file.

    Attributes:
        values: Its values, without quotes around them; none if the file has no record.
        is_alone: Whether no other record follows, as far as the text goes.
        end: What ends its line; empty if the text does.
    """

    values: tuple[str, ...]
    is_alone: bool
    end: str = ""


def first_record(text: str, form: Form, *, is_whole: bool) -> FirstRecord | None:
    r"""Return the first record of a text; None if it ends beyond the text.

    Lines without a visible character, and comments, are no records.

    Args:
        text: The beginning of a file.
        form: How it is written.
        is_whole: Whether the text is the whole file.

    Example:
        >>> first_record('id,"a ""b"" c"\n1,2', Form("csv"), is_whole=False)
        FirstRecord(values=('id', 'a "b" c'), is_alone=False, end='\n')
    """
    signs = _signs(form.separator, form.quote, form.escape, form.line_end)
    place = 1 if text.startswith("\ufeff") else 0
    while (line := signs.line.match(text, place)) is not None and _is_nothing(line[0], form):
        place = line.end()
    if not text[place:].strip():
        return FirstRecord((), is_alone=True) if is_whole else None
    values: list[str] = []
    while True:
        field = signs.field.match(text, place)
        end = len(text) if field is None else field.end()
        if field is None or (not is_whole and (end == len(text) or signs.open.match(text, place))):
            return None
        quoted, plain = field["quoted"], field["plain"]
        values.append(plain if quoted is None else signs.escaped.sub(r"\1", quoted))
        place = end
        if field["end"] != form.separator:
            return FirstRecord(tuple(values), not text[place:].strip(), field["end"])


def _is_nothing(line: str, form: Form) -> bool:
    return not line.strip() or bool(form.comment and line.startswith(form.comment))


class _Signs(NamedTuple):
    line: re.Pattern[str]
    field: re.Pattern[str]
    open: re.Pattern[str]
    escaped: re.Pattern[str]


@lru_cache
def _signs(separator: str, quote: str, escape: str, line_end: str | None) -> _Signs:
    sign, end = re.escape(separator), r"\r\n|\n|\r" if line_end is None else re.escape(line_end)
    after = rf"{sign}|{end}|\Z"
    plain = rf"(?P<plain>(?:(?!{after}).)*+)"
    quoted, opened, escaped = r"(?P<quoted>(?!))", "(?!)", "(?!)"
    if quote:
        mark, before = re.escape(quote), re.escape(escape or quote)
        escaping = rf"{mark}{mark}" if before == mark else rf"{before}."
        plain_signs = rf"[^{mark}{before}]*+"
        inside = rf"{plain_signs}(?:{escaping}{plain_signs})*+"
        quoted = rf"{mark}(?P<quoted>{inside}){mark}[ \t]*(?={after})"
        opened = rf"{mark}{inside}\Z"
        escaped = rf"{before}([{mark}{before}])"
    return _Signs(
        re.compile(rf"(?:(?!{end}).)*+(?:{end})", re.DOTALL),
        re.compile(rf"(?:{quoted}|{plain})(?P<end>{after})", re.DOTALL),
        re.compile(opened, re.DOTALL),
        re.compile(escaped),
    )


@dataclass(frozen=True, slots=True)
class Lines:
    """How the lines of a file end.

    Attributes:
        first: The values of its first record; none if it has no record.
        is_alone: Whether it has no other record.
        end: What ends a line, where Spark needs it.
        has_breaks: Whether a field may hold what ends a line, or NUL, or is nothing but spaces.
    """

    first: tuple[str, ...]
    is_alone: bool = False
    end: str | None = None
    has_breaks: bool = False


def scan(path: Path, form: Form) -> Lines | None:
    """Return how the lines of a CSV file end; None if Python can't read it.

    A quote is an ordinary character in a field that doesn't begin with one.

    Raises:
        FileFault: It has bytes that its encoding does not have, a quote that isn't closed, or lines that end
            in several ways where one of them is in a value, too.
    """
    look = _Look(form)
    try:
        with opened(path) as stream:
            for block in _plain_blocks(stream, form):
                look.add(block)
        look.finish()
        inside = _ends_inside(path, form, look) if look.is_doubtful else dict.fromkeys(_NAMES, 0)
    except UnicodeDecodeError as error:
        line = undecodable_line(path, form.codec or "")
        raise FileFault("undecodable", str(path), line, encoding=form.encoding) from error
    except DAMAGED:
        return None  # Spark reports the error when it reads the file
    return look.lines(str(path), inside)


class _Look:
    """What is found in the blocks of a file.

    Attributes:
        ends: How often lines, or parts of values, end in each way.
        has_odd_lines: Whether a line may have an odd number of quotes, or end in a field that one begins.
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        self.ends = dict.fromkeys(_NAMES, 0)
        self.has_odd_lines = False
        self.first: FirstRecord | None = None
        self._codec = _codec_of(form)
        self._quote = form.quote.encode(self._codec, "replace")
        self._escape = form.escape.encode(self._codec, "replace") if form.escape != form.quote else b""
        self._mark = form.separator.encode(self._codec, "replace") + self._quote
        self._left_open = re.compile(re.escape(self._mark) + rb"[^" + re.escape(self._quote) + rb"\n]*+\n")
        self._cut = b""
        self._unneeded = bytes(set(range(256)) - set(self._quote + _LF))
        self._begin: list[bytes] = []
        self._open = b""
        self._line = _LF
        self._has_quotes = self._has_invisible = False

    @property
    def is_doubtful(self) -> bool:
        """Whether only a look at fields can say which line breaks are inside quotes."""
        may_end_in_returns = self._has_quotes and self.ends[_CR] > 0 and not self.ends_in_feeds
        return self.has_odd_lines or bool(self._open) or self._cut == self._mark or may_end_in_returns

    @property
    def ends_in_feeds(self) -> bool:
        """Whether the first record ends in a line feed, with or without a carriage return."""
        return self.first is not None and self.first.end in ("\n", "\r\n")

    def add(self, block: bytes) -> None:
        """Look at a block, which does not end between the two characters of a line end."""
        unseen = block
        if self.first is None:
            self._begin.append(block)
            # A record that does not end soon is looked for in ever longer texts, not in each of them.
            if len(self._begin).bit_count() == 1:
                self.first = self._first_record(is_whole=False)
            unseen = b"".join(self._begin) if self.first is not None else b""
        elif self.first.is_alone and block.strip():
            self.first = self.first._replace(is_alone=False)
        if self.form.line_end is not None:
            return
        pairs = 0
        if _CR in block:
            pairs = block.count(_CRLF)
            self.ends[_CRLF] += pairs
            self.ends[_CR] += block.count(_CR) - pairs
        self.ends[_LF] += block.count(_LF) - pairs
        if self._quote and _NUL in block:
            # From a field with quotes at the end of a line that is read alone, Spark loses it; from one with
            # doubled quotes always.
            self._has_invisible = self.has_odd_lines = True
        if self._quote:
            begin, self._cut = self._cut, block[1 - len(self._mark) :]
            if self._open or begin == self._mark or self._quote in block:
                self._count_quotes(block)
                self._find_left_open(begin + block)
        self._find_invisible(unseen)

    def finish(self) -> None:
        """Look at what is left."""
        if self.first is None:
            self.first = self._first_record(is_whole=True)
            self._find_invisible(b"".join(self._begin))
        self._has_invisible = self._has_invisible or len(self._line) > 1

    def lines(self, path: str, inside: Mapping[bytes, int]) -> Lines:
        """Return how the lines end.

        Args:
            path: The file.
            inside: How often each way is inside quotes, as far as that was looked for.

        Raises:
            FileFault: The first record is too long, or lines end in several ways where one of them is in a
                value, too.
        """
        first = self.first
        if first is None:
            raise FileFault("long_header", path, size=str(_LONGEST_RECORD))
        outside = {end for end, count in self.ends.items() if count > inside[end]}
        own = outside - {_CR}
        if not own:
            has_breaks = any(inside.values())
            return Lines(first.values, first.is_alone, "\r" if has_breaks else None, has_breaks)
        # A carriage return alone is a part of a value, as is what is inside quotes.
        has_breaks = inside[_LF] + inside[_CRLF] > 0 or self._has_invisible
        if not has_breaks and not self.ends[_CR]:
            return Lines(first.values, first.is_alone)
        if len(own) > 1:
            raise FileFault(
                "mixed_ends", path, ends=", ".join(_NAMES[end] for end in _NAMES if end in outside)
            )
        end = own.pop().decode()
        if first.end == "\r":
            first = self._first_record(is_whole=True, line_end=end) or first
        return Lines(first.values, first.is_alone, end, has_breaks)

    def _first_record(self, *, is_whole: bool, line_end: str | None = None) -> FirstRecord | None:
        begin = b"".join(self._begin)
        if len(begin) > _LONGEST_RECORD:
            return None
        form = self.form if line_end is None else replace(self.form, line_end=line_end)
        text = begin.removeprefix(codecs.BOM_UTF8).decode(self._codec, "replace")
        return first_record(text, form, is_whole=is_whole)

    def _count_quotes(self, block: bytes) -> None:
        """Note whether a line has an odd number of quotes."""
        self._has_quotes = True
        if self.has_odd_lines:
            return
        # Pairs of quotes in a line go; what remains is one quote of each line with an odd number.
        *ended, rest = (self._open + block.translate(None, self._unneeded)).rsplit(_LF, 1)
        pair = self._quote * 2
        self.has_odd_lines = any(self._quote in each.replace(pair, b"") for each in ended)
        self.has_odd_lines = self.has_odd_lines or bool(self._escape and self._escape in block)
        self._open = rest.replace(pair, b"")

    def _find_left_open(self, text: bytes) -> None:
        """Note whether a field that a quote begins is open where its line ends.

        The line may have an even number of quotes: in fields without them, quotes are ordinary characters.
        """
        self.has_odd_lines = self.has_odd_lines or self._left_open.search(text) is not None
        rest = text[text.rfind(self._mark) :]
        if rest.startswith(self._mark) and rest.count(self._quote) == 1 and _LF not in rest:
            self._cut = self._mark

    def _find_invisible(self, block: bytes) -> None:
        """Note whether a line has nothing but spaces, which Spark would leave out where it is a record."""
        if self.form.separator.strip() and (self.first is None or len(self.first.values) > 1):
            return
        text = self._line + block
        last = max(text.rfind(_LF), text.rfind(_CR))
        self._line = text[last:] if last >= 0 and not text[last:].strip(_SPACES) else b"x"
        self._has_invisible = self._has_invisible or _INVISIBLE.search(text) is not None


def _codec_of(form: Form) -> str:
    """Return the encoding of the blocks of a file."""
    return (form.codec or "latin-1") if form.has_plain_bytes else "utf-8"


def _plain_blocks(stream: IO[bytes], form: Form) -> Iterator[bytes]:
    """Yield a file in blocks in which the characters of ASCII are single bytes, none between CR and LF.

    Raises:
        UnicodeDecodeError: There are bytes that the encoding does not have.
    """
    decoder = None if form.codec in _ANY else codecs.getincrementaldecoder(form.codec or "")()
    rest = b""
    while block := stream.read(_BLOCK):
        if decoder is not None and not form.has_plain_bytes:
            block = decoder.decode(block).encode("utf-8", "surrogatepass")
        elif decoder is not None and (decoder.getstate()[0] or not block.isascii()):
            decoder.decode(block)
        block, rest = (rest + block if rest else block), b""
        if block.endswith(b"\r"):
            block, rest = block[:-1], b"\r"
        yield block
    if decoder is not None:
        decoder.decode(b"", final=True)
    if rest:
        yield rest


def _ends_inside(path: Path, form: Form, look: _Look) -> dict[bytes, int]:
    """Return how often each line end is inside quotes.

    Raises:
        FileFault: A quote is never closed, or closes in the middle of its field; or a field has what Spark
            loses.
    """
    with opened(path) as stream, tempfile.TemporaryFile() as copy:
        file: IO[bytes] = copy
        if form.has_plain_bytes and isinstance(stream, io.BufferedReader):
            file = stream  # it is not compressed
        else:
            copy.writelines(_plain_blocks(stream, form))
            copy.flush()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if not look.ends_in_feeds:
                found = _Fields(content, form, str(path), _CR).ends_inside()
                if all(look.ends[end] == found[end] for end in (_LF, _CRLF)):
                    return found
            return _Fields(content, form, str(path), _LF).ends_inside()


class _Fields:
    """Looks for line breaks in the fields of lines that begin or end some: with an odd number of quotes."""

    def __init__(self, content: mmap.mmap, form: Form, path: str, end: bytes) -> None:
        self._content = content
        self._path = path
        self._end = end
        codec = _codec_of(form)
        signs = (form.separator, form.quote, form.escape or form.quote, form.comment)
        encoded = [sign.encode(codec, "replace") for sign in signs]
        self._parts = _parts(*encoded, end)
        self._quote = encoded[1]
        self._mark = encoded[0] + encoded[1]
        self._escaped_quote = encoded[2] + encoded[1]
        self._escaped = (
            re.compile(re.escape(encoded[2]) + b".", re.DOTALL) if form.escape != form.quote else None
        )

    def ends_inside(self) -> dict[bytes, int]:
        """Return how often each line end is inside quotes."""
        found = dict.fromkeys(_NAMES, 0)
        place, number, size = 0, 1, len(self._content)
        while place < size:
            stop = self._content.find(self._end, place) + 1 or size
            if self._is_odd(self._content[place:stop]):
                stop = self._look(place, number, found)
                number += self._content[place : stop - 1].count(self._end)
            place, number = stop, number + 1
        return found

    def _is_odd(self, line: bytes) -> bool:
        if _NUL in line and self._escaped_quote in line:
            return True
        if self._escaped is not None:
            line = self._escaped.sub(b"", line)
        _, mark, last = line.rpartition(self._mark)
        if mark and self._quote not in last:
            return True  # it ends in a field that a quote begins
        # Among lines that end in carriage returns, line feeds are inside quotes or end lines, too.
        return line.count(self._quote) % 2 == 1 or (self._end == _CR and _LF in line)

    def _look(self, place: int, number: int, found: dict[bytes, int]) -> int:
        """Add the line ends in the fields from a line on; return where a line ends outside of quotes."""
        for part in self._parts.finditer(self._content, place):
            text, close = part.groups()
            if text is None:
                if part[0].endswith(self._end):
                    return part.end()
                continue
            breaks = _BREAK.findall(text)
            is_open = close is None and (bool(breaks) or part.end() == len(self._content))
            if is_open or (_NUL in text and self._escaped_quote in text):
                line = number + self._content[place : part.start()].count(self._end)
                raise FileFault("open_quote" if is_open else "nul", self._path, line)
            for each in breaks:
                found[each] += 1
        return len(self._content)


@lru_cache
def _parts(separator: bytes, quote: bytes, escape: bytes, comment: bytes, end: bytes) -> re.Pattern[bytes]:
    """Return the pattern of a part of a CSV file: text without quotes, a quoted field, or a single quote."""
    sign, mark, before = map(re.escape, (separator, quote, escape))
    # Fields begin after a separator, a line break or a byte order mark.
    begin = rb"(?:\A|(?<=" + sign + rb")|(?<=[\r\n])|(?<=\A\xef\xbb\xbf))"
    inside = rb"[^" + mark + rb"]*+(?:" + mark * 2 + rb"[^" + mark + rb"]*+)*+"
    if before != mark:
        inside = rb"[^" + mark + before + rb"]*+(?:" + before + rb".[^" + mark + before + rb"]*+)*+"
    close = mark + rb"[ \t]*(?=" + sign + rb"|[\r\n]|\Z)"
    skipped = rb"(?:(?<=[\r\n])|\A)" + re.escape(comment) + rb"[^\r\n]*+|" if comment else b""
    plain = rb"[^" + mark + end + rb"]*+" + end + rb"|[^" + mark + end + rb"]++"
    quoted = begin + mark + rb"(" + inside + rb")(" + close + rb")?"
    return re.compile(skipped + plain + rb"|" + quoted + rb"|" + mark, re.DOTALL)


def undecodable_line(path: Path, encoding: str) -> int | None:
    """Return the number of the first line with bytes that an encoding does not have; None if there is none.

    A file that can't be examined has none.
    """
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    try:
        with opened(path) as stream:
            while block := stream.read(_BLOCK):
                line += decoder.decode(block).count("\n")
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        # Bytes that the decoder kept from the block before are a part of `object`.
        return line + error.object[: error.start].decode(encoding, errors="ignore").count("\n")
    except DAMAGED:
        return None  # Spark reports the error when it reads the file
    return None


def lines_of(path: Path, encoding: str) -> Iterator[str]:
    """Yield the lines of a text file without their ends; none if it can't be examined."""
    try:
        with io.TextIOWrapper(opened(path), encoding=encoding, errors="replace") as lines:
            for line in lines:
                yield line.removeprefix("\ufeff").rstrip("\r\n")
    except DAMAGED:
        return


def ends_of_lines(reading: Reading) -> dict[str, Lines]:
    """Return how the lines of CSV files end, in the order of their paths.

    Raises:
        FileFault: A file can't be read as it is declared to be written.
    """
    near: dict[str, Lines] = {}
    paths = reading.source.paths
    for path in filter(is_near, paths):
        found = scan(local_path(path) or Path(path), reading.form)
        if found is not None:
            near[path] = found
    far = _far_lines(reading, [path for path in paths if path not in near])
    return {path: near[path] if path in near else far[path] for path in paths}


def check_encoding(reading: Reading) -> None:
    """Raise `FileFault` if a file has bytes that its encoding does not have; Spark would replace them."""
    far, form = [], reading.form
    for path in reading.source.paths:
        local = local_path(path)
        if local is None or not is_examinable(local):
            far.append(path)
        elif form.codec is not None and (line := undecodable_line(local, form.codec)) is not None:
            raise FileFault("undecodable", path, line, encoding=form.encoding)
    if far and form.is_utf8:
        _odd_files(reading, far)


def _far_lines(reading: Reading, paths: Sequence[str]) -> dict[str, Lines]:
    """Return how the lines of files end that Python cannot read.

    Raises:
        FileFault: A file can't be read as it is declared to be written.
    """
    if not paths:
        return {}
    with ThreadPoolExecutor(_AT_ONCE) as workers:
        firsts = list(workers.map(partial(_far_first_record, reading), paths))
    has_blanks = not reading.form.separator.strip() or any(len(each.values) < 2 for each in firsts)
    odd = _odd_files(reading, paths, has_blanks=has_blanks)
    found = {}
    for path, first in zip(paths, firsts, strict=True):
        is_odd = path in odd
        lines = _scan_copy(reading, path) if is_odd and is_examinable(Path(parent(path)[1])) else None
        found[path] = lines or Lines(first.values, first.is_alone, None, is_odd)
    return found


def _far_first_record(reading: Reading, path: str) -> FirstRecord:
    """Return the first record of a file."""
    found = begin_record(reading.system, path, reading.form)
    if found is not None:
        return found
    lines = (
        reading.session.read.option("__globPaths__", "false").text(path).where("trim(value) <> ''").take(2)
    )
    text = "".join(f"{line[0]}\n" for line in lines)
    return first_record(text, reading.form, is_whole=len(lines) < 2) or FirstRecord((), is_alone=True)


def begin_record(system: Files, path: str, form: Form) -> FirstRecord | None:
    """Return the first record of a file, which is read no further; None if Python can't decompress it.

    Raises:
        FileFault: It is too long.
    """
    name = parent(path)[1]
    if not is_examinable(Path(name)):
        return None
    for size in _SIZES:
        content = system.begin(path, size)
        try:
            text, is_whole = begin_of_text(content, name, form.codec or "latin-1")
        except DAMAGED:
            return FirstRecord((), is_alone=False)  # Spark reports the error when it reads the file
        found = first_record(text, form, is_whole=is_whole and len(content) < size)
        if found is not None:
            return found
        if len(content) < size:
            return first_record(text, form, is_whole=True) or FirstRecord((), is_alone=False)
    raise FileFault("long_header", path, size=str(_SIZES[-1]))


def _odd_files(reading: Reading, paths: Sequence[str], *, has_blanks: bool = False) -> set[str]:
    """Return the files of which a line has an odd number of quotes, a field left open, or a carriage return.

    These are all if the bytes of a file don't show it.

    Args:
        reading: What is read.
        paths: Some of its files.
        has_blanks: Whether a line that has nothing but spaces counts, too.

    Raises:
        FileFault: A line has bytes that are not UTF-8.
    """
    form = reading.form
    if not form.has_plain_bytes:
        return set(paths)
    reader = reading.session.read.option("__globPaths__", "false").option("lineSep", form.line_end or "\n")
    quote = text_sql(form.quote)
    conditions = ["contains(trim(trailing '\\r' from value), '\\r')" if form.line_end is None else "false"]
    if has_blanks:
        conditions.append("value rlike '^[\\\\t-\\\\r ]+$' and value <> '\\r'")
    if form.quote:
        conditions.append(f"octet_length(value) % 2 <> octet_length(replace(value, {quote})) % 2")
        mark = text_sql(form.separator + form.quote)
        last = f"substring_index(value, {mark}, -1)"
        conditions.append(f"contains(value, {mark}) and not contains({last}, {quote})")
        conditions.append("contains(value, '\\0')")
    if form.escape not in ("", form.quote):
        conditions.append(f"contains(value, {text_sql(form.escape)})")
    invalid = "not is_valid_utf8(value)" if form.is_utf8 else "false"
    found = (
        reader.text(list(paths))
        .selectExpr("input_file_name() as file", f"{invalid} as invalid", f"{' or '.join(conditions)} as odd")
        .where("invalid or odd")
        .groupBy("file")
        .agg({"invalid": "max"})
        .collect()
    )
    known = {_plain_path(path): path for path in paths}
    for file, is_invalid in found:
        if is_invalid:
            raise FileFault("undecodable", known.get(_plain_path(file), file), encoding=form.encoding)
    odd = {known.get(_plain_path(file)) for file, _ in found}
    # A file whose path Spark writes in another way must not be lost.
    return set(paths) if None in odd else {each for each in odd if each is not None}


def _plain_path(path: str) -> str:
    """Return a path without its scheme, as Spark and we both write it."""
    return unquote(path.partition(":")[2] if ":/" in path else path).lstrip("/")


def _scan_copy(reading: Reading, path: str) -> Lines | None:
    """Return how the lines of a file end, of which a temporary copy is made if it is elsewhere."""
    local, files, form = local_path(path), reading.system, reading.form
    if local is not None:
        return scan(local, form)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy").with_suffix(Path(path).suffix)
        with copy.open("wb") as sink:
            content = files.read_range(path, 0, _COPIED)
            while sink.write(content) == _COPIED:
                # A store refuses to read after the end: the byte before is read once more.
                content = files.read_range(path, sink.tell() - 1, _COPIED + 1)[1:]
        try:
            return scan(copy, form)
        except FileFault as fault:
            raise FileFault(fault.code, path, fault.line, **fault.given) from fault
