"""`python -m switchboard` is the same as the `switchboard` command."""

from switchboard.cli import main

main()
