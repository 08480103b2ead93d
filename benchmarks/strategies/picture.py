"""A bar chart in SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

COLOURS = {
    "tool": "#1f6f8b",
    "naive": "#c9cdd2",
    "hand": "#e0a458",
    "dbt": "#c05746",
    "delta-rs": "#8d7b68",
    "duckdb": "#7a9e5f",
    "warm": "#4f3b78",
    "floor": "#33415c",
}
LABELS, WIDTH, THICK, GAP = 430, 900, 9, 10
LEGEND, STEP = 270, 90


@dataclass(frozen=True, slots=True)
class Bar:
    """A group of bars: its name, and the seconds of each contestant."""

    what: str
    seconds: Mapping[str, float]


def draw(file: Path, bars: Sequence[Bar], names: Mapping[str, str]) -> None:
    """Write a bar chart in which each group is scaled to its longest bar.

    Args:
        file: Where to write it.
        bars: The groups.
        names: What the page calls the contestants.
    """
    known = [name for name in COLOURS if any(name in bar.seconds for bar in bars)]
    group = THICK * len(known) + GAP
    height = 30 + group * len(bars)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"',
        '  font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *_legend([(COLOURS[name], names[name]) for name in known]),
    ]
    for number, bar in enumerate(bars):
        parts += _group(bar, known, 30 + number * group)
    file.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def _legend(entries: Sequence[tuple[str, str]]) -> list[str]:
    parts = []
    for number, (colour, name) in enumerate(entries):
        x = LEGEND + STEP * number
        parts += [f'<rect x="{x}" y="8" width="10" height="10" fill="{colour}"/>']
        parts += [f'<text x="{x + 14}" y="17">{name}</text>']
    return [*parts, '<text x="4" y="17">CPU seconds; each group has its own scale</text>']


def _group(bar: Bar, names: Sequence[str], y: int) -> list[str]:
    longest = max(bar.seconds.values(), default=1.0) or 1.0
    parts = [f'<text x="4" y="{y + 17}">{escape(bar.what)}</text>']
    for number, name in enumerate(names):
        if name in bar.seconds:
            colour, value, top = COLOURS[name], bar.seconds[name], y + number * THICK
            length = (WIDTH - LABELS - 50) * value / longest
            parts.append(
                f'<rect x="{LABELS}" y="{top}" width="{length:.1f}" height="{THICK - 1}" fill="{colour}"/>'
                f'<text x="{LABELS + length + 4:.1f}" y="{top + 8}" font-size="9">{value:.1f}</text>'
            )
    return parts
