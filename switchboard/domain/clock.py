"""Time as the rules see it: a function that gives ms since the epoch. Tests pass their own."""

from collections.abc import Callable

Clock = Callable[[], int]
