"""Names of what a mapping is made of, such that parts of an imported project have names of their own."""

from __future__ import annotations

__all__ = ["qualified"]

_OF_PROJECT = " of project "


def qualified(name: str, inner: str, parts: dict[str, str]) -> dict[str, str]:
    """Return parts of a mapping by names that no part of this project has, if an imported one declares it.

    Args:
        name: The mapping's name in this project, such as `crm/orders`.
        inner: Its name in its own project.
        parts: The parts by their names there.

    Example:
        >>> qualified("crm/orders", "orders", {"mapping orders": "…"})
        {'mapping orders of project crm': '…'}
    """
    if inner == name:
        return parts
    project = name.removesuffix(f"/{inner}")
    return {f"{part}{_OF_PROJECT}{project}": text for part, text in parts.items()}
