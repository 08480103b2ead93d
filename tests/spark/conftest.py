"""Mark the tests that need Spark, and watch what readers see while others write."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
FEWEST_LOOKS = 20


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture
def reading() -> Callable[[Callable[[], Any]], AbstractContextManager[list[Any]]]:
    """Has a reader look at something over and over while the body runs, and gives what it saw."""
    return _reading


@contextmanager
def _reading(look: Callable[[], Any]) -> Iterator[list[Any]]:
    seen: list[Any] = []
    is_over = threading.Event()

    def loop() -> None:
        while not is_over.is_set() or len(seen) < FEWEST_LOOKS:
            try:
                seen.append(look())
            except Exception as error:  # what a reader meets is what the test is about
                seen.append(error)

    reader = threading.Thread(target=loop)
    reader.start()
    try:
        yield seen
    finally:
        is_over.set()
        reader.join()
