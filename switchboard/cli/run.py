"""Commands that run Switchboard: all of it, or one part."""

from typing import NoReturn

import typer

from switchboard.settings import SettingsError, load_settings

PARTS = frozenset({"gateway", "dispatcher", "orchestrator"})


def register(app: typer.Typer) -> None:
    for command in (up, gateway, dispatcher, orchestrator):
        app.command()(command)


def up() -> None:
    """Run everything, on one port."""
    _run(PARTS)


def gateway() -> None:
    """Run only the public send API."""
    _run(frozenset({"gateway"}))


def dispatcher() -> None:
    """Run only the pacing engine."""
    _run(frozenset({"dispatcher"}))


def orchestrator() -> None:
    """Run only sessions, proxies and the workers' API."""
    _run(frozenset({"orchestrator"}))


def fail(reason: Exception) -> NoReturn:
    """One clear line for each thing that is wrong, no traceback."""
    for line in str(reason).splitlines():
        typer.echo(f"switchboard: {line}", err=True)
    raise typer.Exit(2)


def _run(parts: frozenset[str]) -> None:
    # Imported here so that `switchboard config` and `--help` answer at once.
    from switchboard.runtime import run
    from switchboard.store.server import StoreStartError

    try:
        run(load_settings(), parts)
    except (SettingsError, StoreStartError) as reason:
        fail(reason)
