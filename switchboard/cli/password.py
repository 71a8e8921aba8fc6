"""The dashboard's password: set it, or clear it. Never as an argument, where the shell's history would keep it."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

import typer

from switchboard.cli.client import refuse
from switchboard.dashboard.access.passwords import MIN_CHARACTERS, Passwords
from switchboard.domain.errors import InvalidRequest, StoreUnavailable
from switchboard.settings import SettingsError, load_settings
from switchboard.store.server import StoreStartError

app = typer.Typer(help="The dashboard's password, which opens it as the API key does.", no_args_is_help=True)


@app.command("set")
def set_password() -> None:
    """Set it (asks twice; reads a line when it is not typed at a terminal). Ends every sign-in."""
    new = _asked() if _at_terminal() else sys.stdin.readline().rstrip("\r\n")
    _run(lambda passwords: passwords.change(new))
    typer.echo("The password is set. Who was signed in signs in anew.")


@app.command()
def clear() -> None:
    """Remove it: only API keys open the dashboard then. Ends every sign-in."""
    _run(lambda passwords: passwords.clear())
    typer.echo("There is no password any more. Sign in with the API key.")


def _at_terminal() -> bool:
    return sys.stdin.isatty()


def _asked() -> str:
    question = f"New password ({MIN_CHARACTERS} characters or more)"
    return str(typer.prompt(question, hide_input=True, confirmation_prompt="Once more"))


def _run(change: Callable[[Passwords], Awaitable[None]]) -> None:
    from switchboard.wiring import opened_store, system_clock

    async def with_store() -> None:
        async with opened_store(load_settings()) as store:
            await change(Passwords(store.sign_ins, system_clock))

    try:
        asyncio.run(with_store())
    except (InvalidRequest, StoreUnavailable, SettingsError, StoreStartError) as reason:
        refuse(reason)
