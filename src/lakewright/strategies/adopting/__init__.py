"""Adopting tables that something else made: their columns, their rows, what is refused, and the commit."""
