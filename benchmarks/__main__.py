"""Runs benchmarks and writes their results to docs/benchmarks.md, or to results.md beside them.

Usage: python -m benchmarks [SUITE …] [--rounds N]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks import (
    bus,
    cluster,
    contest,
    demo,
    fold,
    large,
    lifecycle,
    manifest,
    reading,
    rewind,
    serve,
    spending,
    startup,
    storage,
    strategies,
)
from benchmarks.report import print_rows, write_page
from lakewright.spark import warmup

SUITES = {
    "Start-up": startup.run,
    "Demo": demo.run,
    "Where a run spends its time": spending.run,
    "Lifecycle": lifecycle.run,
    "Parallel runs": lifecycle.run_side_by_side,
    "Manifest": manifest.run,
    "Bus": bus.run,
    "Reading": reading.run,
    "Strategies": strategies.run,
    "Contest": contest.run,
    "Fold": fold.run,
    "Rewind": rewind.run,
    "Server": serve.run,
    "Storage": storage.run,
    "Cluster": cluster.run,
    "Large": large.run,
}
ONLY_NAMED = {"Large"}
"""Suites that take half an hour and more."""

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
OF_PARTS = {"Where a run spends its time", "Manifest", "Strategies", "Cluster"}
"""Suites that measure parts of the tool, for those who change them: their page is beside the benchmarks."""


def main() -> None:
    """Run the suites that the arguments name, by default all of them."""
    parser = argparse.ArgumentParser(description="Measure, and write the pages of results.")
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(SUITES)}; default: all but Large")
    parser.add_argument("--rounds", type=int, default=3, help="rounds in which each contestant takes a turn")
    chosen = parser.parse_args()
    warmup.main()  # users have the archive of classes; it is made again after a jar has changed
    for title, run in SUITES.items():
        if title in chosen.suites or not (chosen.suites or title in ONLY_NAMED):
            with tempfile.TemporaryDirectory(prefix="lakewright-bench-") as folder:
                rows = run(Path(folder), chosen.rounds)
            print_rows(title, rows)
            write_page(Path(__file__).with_name("results.md") if title in OF_PARTS else PAGE, title, rows)


if __name__ == "__main__":
    main()
