"""From the bytes of an uploaded CSV to rows that can be sent: read it, guess its columns, compose the messages.

Pure: no HTTP, no store, and no sentences either; what is wrong is said in codes that the pages translate.
"""

from switchboard.dashboard.spreadsheet.composing import BadRow, Composed, ReadyRow, compose
from switchboard.dashboard.spreadsheet.guessing import Mapping, guess
from switchboard.dashboard.spreadsheet.reading import read
from switchboard.dashboard.spreadsheet.sheet import Sheet, SheetError

__all__ = ["BadRow", "Composed", "Mapping", "ReadyRow", "Sheet", "SheetError", "compose", "guess", "read"]
