"""`python -m paceline.cli`."""

from paceline.cli.root import main

main()
