"""Draws how the parts of Lakewright work together, into docs/architecture.svg.

    python -m scripts.architecture

The picture brings its own background, so that it is legible whichever colours the page around it has.
"""

from __future__ import annotations

from pathlib import Path

PICTURE = Path(__file__).parents[1] / "docs" / "architecture.svg"
WIDTH, HEIGHT, HIGH = 860, 420, 56

MEANING = "Facts about the lake and the manifest become a plan. Its steps write the lake and the manifest."
STYLE = """\
    text { font: 13px system-ui, sans-serif; fill: #1f2328; text-anchor: middle }
    .name { font-weight: 600 } .note { font-size: 11.5px; fill: #59636e } .left { text-anchor: start }
    .page { fill: #ffffff } .band { fill: #f6f8fa; stroke: #d1d9e0 } .box { fill: #ffffff; stroke: #8c959f }
    .bronze { fill: #fff1e5; stroke: #bc4c00 } .silver { fill: #eaeef2; stroke: #59636e }
    .gold { fill: #fff8c5; stroke: #9a6700 } .core { fill: #ddf4ff; stroke: #0969da }
    .arrow { fill: none; stroke: #59636e; stroke-width: 1.5; marker-end: url(#head) }
    #head path { fill: #59636e }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc } .note { fill: #9198a1 }
      .page { fill: #0d1117 } .band { fill: #151b23; stroke: #3d444d } .box { fill: #0d1117; stroke: #656c76 }
      .bronze { fill: #3d1300; stroke: #db6d28 } .silver { fill: #262c36; stroke: #9198a1 }
      .gold { fill: #341a00; stroke: #d29922 } .core { fill: #0c2d6b; stroke: #4493f8 }
      .arrow { stroke: #9198a1 } #head path { fill: #9198a1 }
    }"""


def band(y: int, high: int, name: str) -> str:
    """Return a row of the picture with its name."""
    return (
        f'<rect class="band" x="14" y="{y}" width="{WIDTH - 28}" height="{high}" rx="8"/>'
        f'<text class="note left" x="26" y="{y + 19}">{name}</text>'
    )


def box(x: int, y: int, wide: int, *, name: str, note: str, kind: str = "box") -> str:
    """Return a part with its name, and below it what it is."""
    middle = x + wide // 2
    return (
        f'<rect class="{kind}" x="{x}" y="{y}" width="{wide}" height="{HIGH}" rx="6"/>'
        f'<text class="name" x="{middle}" y="{y + 25}">{name}</text>'
        f'<text class="note" x="{middle}" y="{y + 42}">{note}</text>'
    )


def arrow(path: str, label: str = "", *, at: tuple[int, int] = (0, 0)) -> str:
    """Return an arrow along a path, with a word beside it."""
    text = f'<text class="note left" x="{at[0]}" y="{at[1]}">{label}</text>' if label else ""
    return f'<path class="arrow" d="{path}"/>{text}'


def drawing() -> str:
    """Return the picture as SVG."""
    surfaces, plan, stored = 14, 92, 230
    rows = stored + 28, stored + 104
    parts = [
        band(surfaces, 44, "you use"),
        *(
            f'<text class="name" x="{x}" y="{surfaces + 27}">{name}</text>'
            for x, name in (
                (190, "command line"),
                (340, "Python"),
                (490, "page · HTTP API"),
                (690, "triggers · schedulers"),
            )
        ),
        arrow("M 430 58 V 86"),
        band(plan, 96, "one mechanism"),
        box(36, plan + 28, 170, name="project files", note="YAML: what should be"),
        box(242, plan + 28, 170, name="facts", note="what is there", kind="core"),
        box(448, plan + 28, 170, name="plan", note="what is due, and why", kind="core"),
        box(654, plan + 28, 170, name="apply", note="with Spark, if needed", kind="core"),
        *(arrow(f"M {x} {plan + 56} h 30") for x in (206, 412, 618)),
        arrow(f"M 327 {stored} V {plan + 102}", "observe", at=(337, plan + 120)),
        arrow(f"M 739 {plan + 96} V {stored - 6}", "commits, records", at=(628, plan + 120)),
        band(stored, 176, "lake and manifest"),
        box(36, rows[0], 130, name="files arrive", note="CSV, JSON, …"),
        box(202, rows[0], 130, name="bronze", note="slices as they came", kind="bronze"),
        box(368, rows[0], 146, name="silver", note="full, merge, historic", kind="silver"),
        box(550, rows[0], 112, name="gold", note="SQL, Python", kind="gold"),
        box(698, rows[0], 126, name="readers", note="Spark, DuckDB, …"),
        *(arrow(f"M {x} {rows[0] + 28} h 30") for x in (166, 332, 514, 662)),
        box(
            36,
            rows[1],
            788,
            name="manifest",
            note="slices, locks, runs and builds, in SQLite, PostgreSQL, DynamoDB or Delta",
        ),
    ]
    body = "\n  ".join(parts)
    head = 'viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-label="{MEANING}">\n'
        f"  <style>\n{STYLE}\n  </style>\n"
        f'  <defs><marker id="head" {head}><path d="M 0 0 L 8 4 L 0 8 z"/></marker></defs>\n'
        f'  <rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="10"/>\n  {body}\n</svg>\n'
    )


if __name__ == "__main__":
    PICTURE.write_text(drawing())
