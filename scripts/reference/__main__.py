"""Writes the reference pages that are generated from the code: `python -m scripts.reference`."""

from __future__ import annotations

from scripts.reference.pages import PAGES, page

for name, path in PAGES.items():
    path.write_text(page(name))
