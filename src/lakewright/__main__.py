"""`python -m lakewright` is the command `lakewright`."""

import sys

from lakewright.cli import main

if __name__ == "__main__":
    sys.exit(main())
