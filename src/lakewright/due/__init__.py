"""What is due: from the facts of a lake to the steps that make it as it should be, without any I/O.

Source: Lakewright's own. A plan is a function of what is there and what was decided, and of nothing else: not
of the history of runs, a clock or an order in which things happened.
"""
