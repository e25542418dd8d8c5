"""`python -m mooring` is the `mooring` command."""

from mooring.cli import main

main()
