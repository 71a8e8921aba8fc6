"""`switchboard proxies`: the pool. Credentials go in, and never come out again."""

import json
import sys
from typing import Annotated

import typer
from rich.prompt import Prompt

from switchboard.cli import show, words
from switchboard.cli.client import refuse
from switchboard.cli.sessions import AsJson, Url, Yes, server
from switchboard.domain.ids import is_proxy_id

app = typer.Typer(help="Proxies: the pool that sessions get their places from.", no_args_is_help=True)


def _proxy_id(text: str) -> str:
    if not is_proxy_id(text):
        raise typer.BadParameter("is no proxy id; see `switchboard proxies list`")
    return text


Proxy = Annotated[str, typer.Argument(help="As listed, like proxy_1.", callback=_proxy_id)]


@app.command("list")
def list_proxies(url: Url = None, as_json: AsJson = False) -> None:
    """Every proxy, how it is, and who is on it."""
    with server(url) as client:
        items = client.get("/api/proxies")["items"]
        inventory = client.get("/api/inventory")
    if as_json:
        typer.echo(json.dumps({"proxies": items, "inventory": inventory}, indent=2))
        return
    console = show.console()
    if not items:
        console.print("The pool is empty. Add a proxy: [bold]switchboard proxies add[/bold]")
        return
    console.print(show.proxies(items))
    for item in items:
        if item["status"] == "BAD":
            console.print(f"  {item['proxyId']}: {words.fault(item['reason'])}", markup=False, style="dim")
    console.print(
        f"{inventory['used']} of {inventory['capacity']} places taken, {inventory['free']} free.", style="dim"
    )


@app.command()
def add(
    proxy: Annotated[
        str | None,
        typer.Argument(
            help="socks5h://user:password@host:port, or host:port:user:password as providers list it; "
            "asked for if left out, which keeps it out of the shell's history."
        ),
    ] = None,
    url: Url = None,
) -> None:
    """Add a proxy. It is tried at once."""
    with server(url) as client:
        item = client.post("/api/proxies", {"url": (proxy or _asked()).strip()})
        show.console().print(show.proxies([item]))
        if item["status"] == "BAD":
            verdict = client.post(f"/api/proxies/{item['proxyId']}/probe")
            if verdict["ok"]:  # it was but a moment
                return
            refuse(f"{item['proxyId']} is in the pool, but does not work: {verdict['detail']} It is tried again later.")


def _asked() -> str:
    """Not on the command line, so that it stays out of the shell's history."""
    shapes = "socks5h://user:password@host:port or host:port:user:password"
    return Prompt.ask(shapes, password=True) if sys.stdin.isatty() else sys.stdin.readline()


@app.command()
def remove(
    proxy: Proxy,
    force: Annotated[bool, typer.Option("--force", help="Move its sessions to others, or let them wait.")] = False,
    yes: Yes = False,
    url: Url = None,
) -> None:
    """Take a proxy out of the pool."""
    if force and not yes:
        typer.confirm(f"Move all sessions of {proxy} to others, or let them wait?", abort=True)
    with server(url) as client:
        client.delete(f"/api/proxies/{proxy}", **({"force": "true"} if force else {}))
    typer.echo(f"{proxy} is removed.")


@app.command()
def probe(proxy: Proxy, url: Url = None) -> None:
    """Try a proxy now."""
    with server(url) as client:
        verdict = client.post(f"/api/proxies/{proxy}/probe")
    mark = "[green]✓[/green]" if verdict["ok"] else "[bold red]✗[/bold red]"
    show.console().print(f"{mark} {proxy}: {verdict['detail']} ({verdict['tookMs']} ms)")
    if not verdict["ok"]:
        raise typer.Exit(1)
