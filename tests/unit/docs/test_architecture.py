"""The drawn architecture is that of its script."""

from __future__ import annotations

from scripts.architecture import PICTURE, drawing


def test_the_picture_is_up_to_date() -> None:
    assert PICTURE.read_text() == drawing(), "run: make docs"
