"""Examination and repair of silver tables: broken rules, and the commits since which they are broken."""
