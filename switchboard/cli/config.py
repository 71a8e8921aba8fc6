"""`switchboard config`: the settings as they are in effect, secrets hidden."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from switchboard.cli.run import fail
from switchboard.settings import SettingsError, load_settings


def register(app: typer.Typer) -> None:
    app.command()(config)


def config(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print the settings in effect, secrets hidden."""
    try:
        effective = load_settings().effective()
    except SettingsError as reason:
        fail(reason)
    if as_json:
        typer.echo(json.dumps(effective, indent=2, ensure_ascii=False))
        return
    table = Table("setting", "value")
    for name, value in effective.items():
        table.add_row(name, Text(value) if value else Text("not set", style="dim"))
    Console().print(table)
