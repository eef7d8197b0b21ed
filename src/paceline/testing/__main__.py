"""`python -m paceline.testing`: see `prove`."""

import sys

from paceline.testing.prove import main

if __name__ == "__main__":
    sys.exit(main())
