"""Reading of files: of any format, strictly, to raw values that `schema.convert` makes typed ones of.

Source: the rules of reading.
"""
