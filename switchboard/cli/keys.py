"""API keys beside the one of the settings: make, list, revoke."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from switchboard.settings import load_settings
from switchboard.store import Store
from switchboard.store.api_keys import SCOPES, ApiKey

Answer = TypeVar("Answer")

app = typer.Typer(help="API keys with scopes, sessions and a rate of their own.", no_args_is_help=True)


async def _with_store(ask: Callable[[Store], Awaitable[Answer]]) -> Answer:
    from switchboard.wiring import opened_store

    async with opened_store(load_settings()) as store:
        return await ask(store)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Who uses it, for your own list.")],
    scope: Annotated[list[str] | None, typer.Option(help="send, read or admin; may be repeated.")] = None,
    session: Annotated[list[str] | None, typer.Option(help="Bind it to these sessions; may be repeated.")] = None,
    rate: Annotated[int | None, typer.Option(min=1, help="Calls a minute.")] = None,
) -> None:
    """Make a key. Its secret is shown once and not kept."""
    scopes = frozenset(scope or ["send", "read"])
    if not scopes <= set(SCOPES):
        raise typer.BadParameter(f"a scope is one of {', '.join(SCOPES)}", param_hint="--scope")
    per_minute = rate or load_settings().api_rate_per_minute

    async def make(store: Store) -> tuple[ApiKey, str]:
        return await store.api_keys.create(name, scopes, frozenset(session or ()), per_minute)

    key, secret = asyncio.run(_with_store(make))
    Console().print(f"Key [bold]{key.id}[/bold] for {name}. Its secret, shown only this once:")
    typer.echo(secret)


@app.command("list")
def list_keys() -> None:
    """Every key, without its secret."""
    table = Table("key", "name", "scopes", "sessions", "calls a minute")
    for key in asyncio.run(_with_store(lambda store: store.api_keys.list())):
        sessions = ", ".join(sorted(key.sessions)) or "all"
        table.add_row(key.id, key.name, ", ".join(sorted(key.scopes)), sessions, str(key.per_minute))
    Console().print(table)


@app.command()
def revoke(key: Annotated[str, typer.Argument(help="The key's id, as listed.")]) -> None:
    """End a key. It stops working within five seconds."""
    if not asyncio.run(_with_store(lambda store: store.api_keys.revoke(key))):
        typer.echo(f"switchboard: there is no key '{key}'", err=True)
        raise typer.Exit(1)
    typer.echo(f"Key {key} is revoked.")
