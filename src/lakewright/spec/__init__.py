"""Declarations: project files, their expressions and their definitions. Pure: nothing accesses the lake."""
