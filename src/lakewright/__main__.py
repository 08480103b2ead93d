"""`python -m lakewright` is the command `lakewright`."""

import sys

from lakewright_command import main

if __name__ == "__main__":
    sys.exit(main())
