"""`python -m paceline.testing`: see `report`."""

import sys

from paceline.testing.report import main

if __name__ == "__main__":
    sys.exit(main())
