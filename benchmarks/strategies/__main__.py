"""Measures the strategies and writes benchmarks/results.md and, case by case, results.md beside this.

Usage: python -m benchmarks.strategies [--quick] [--sizes N,N] [--rounds N] [--budget SECONDS] [--only TEXT]
    [--results FILE] [--fresh]

A run continues where the last one stopped: cases in `measured.json` are measured again only with --fresh.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.report import print_rows, write_page
from benchmarks.strategies.page import write_details
from benchmarks.strategies.suite import RESULTS, Plan, Results, measure
from benchmarks.strategies.wanted import rows_wanted

PAGE = Path(__file__).parent.parent / "results.md"

QUICK = (20_000,)


def main() -> None:
    """Measure the missing cases, and print and write the measurements."""
    chosen = _arguments()
    sizes = QUICK if chosen.quick else tuple(int(size) for size in chosen.sizes.split(","))
    plan = Plan(
        sizes=sizes,
        rounds=1 if chosen.quick else chosen.rounds,
        budget=chosen.budget,
        only=chosen.only,
        history=0 if chosen.quick else chosen.history,
    )
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-") as folder:
        file = Path(folder) / "quick.json" if chosen.quick else Path(chosen.results)
        if chosen.fresh:
            file.unlink(missing_ok=True)
        results = Results.read(file)
        measure(Path(folder), plan, results)
    rows = rows_wanted(results.measured, results.history)
    print_rows("Strategies", rows)
    if not chosen.quick and file == RESULTS:
        write_page(PAGE, "Strategies", rows)
        write_details(results.measured, results.history)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the strategies, and write the pages of results.")
    parser.add_argument("--quick", action="store_true", help="one round on small tables; nothing is written")
    parser.add_argument("--sizes", default="300000,2000000", help="rows of the tables")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of each case")
    parser.add_argument(
        "--budget", type=float, default=float("inf"), help="seconds after which no case is started"
    )
    parser.add_argument("--only", default="", help="part of the names of cases to run")
    parser.add_argument("--history", type=int, default=100_000, help="rows of the table of fifty slices")
    parser.add_argument(
        "--results", default=str(RESULTS), help="file for the measurements; default: the one for the docs"
    )
    parser.add_argument("--fresh", action="store_true", help="discard earlier measurements")
    return parser.parse_args()


if __name__ == "__main__":
    main()
