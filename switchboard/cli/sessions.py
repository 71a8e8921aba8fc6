"""`switchboard sessions`: look at sessions, make them, link them, and tell them what to do."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from switchboard.cli import show, words
from switchboard.cli.client import ApiError, Client, connect, refuse
from switchboard.cli.linking import Linking
from switchboard.domain.ids import is_session_id

app = typer.Typer(help="Sessions: linked devices, and the workers that run them.", no_args_is_help=True)

Url = Annotated[str | None, typer.Option(help="Where Switchboard answers, if not on this machine's ORCH_PORT.")]


def _session_id(text: str) -> str:
    if not is_session_id(text):
        raise typer.BadParameter("is no session id; see `switchboard sessions list`")
    return text


Session = Annotated[str, typer.Argument(help="As listed, like worker_1.", callback=_session_id)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@contextmanager
def server(url: str | None) -> Iterator[Client]:
    try:
        yield connect(url)
    except ApiError as error:
        refuse(error)


@app.command("list")
def list_sessions(url: Url = None, as_json: AsJson = False) -> None:
    """Every session and how it is."""
    with server(url) as client:
        items = list(client.pages("/api/sessions"))
        inventory = client.get("/api/inventory")
    if as_json:
        typer.echo(json.dumps(items, indent=2, ensure_ascii=False))
        return
    console = show.console()
    if not items:
        console.print("There is no session yet. Make one: [bold]switchboard sessions new[/bold]")
        return
    console.print(show.sessions(items))
    for item in items:
        if why := show.why(item):
            console.print(f"  {item['sessionId']}: {why}", markup=False, style="dim")
    if inventory["direct"]:
        console.print("[bold yellow]There is no proxy: sessions connect directly (ALLOW_DIRECT).[/bold yellow]")
    else:
        console.print(f"{inventory['free']} more sessions find a place on the proxies.", style="dim")


@app.command()
def new(
    name: Annotated[str | None, typer.Option(help="For your own list.")] = None,
    phone: Annotated[
        str | None, typer.Option(help="Which number will scan it, to give it that number's proxy.")
    ] = None,
    proxy: Annotated[str | None, typer.Option(help="A proxy of the pool, or the socks5h:// URL of one to add.")] = None,
    session: Annotated[str | None, typer.Option("--id", help="An id of your own, instead of worker_<n>.")] = None,
    pair: Annotated[
        bool, typer.Option("--pair", help="Link --phone by an 8-letter code instead of a QR code.")
    ] = False,
    wait: Annotated[bool, typer.Option(help="Show the code and wait for the scan.")] = True,
    url: Url = None,
) -> None:
    """Make a session, show its QR code, and wait for the scan."""
    if pair and not phone:
        raise typer.BadParameter("needs the number to link: --phone", param_hint="--pair")
    given = {"name": name, "phone": phone}
    with server(url) as client:
        if session:
            item = client.post("/api/sessions", _set(sessionId=session, proxyOverride=proxy, **given))
        else:
            item = client.post("/api/sessions/provision", _set(proxy=proxy, **given))
        _link(client, item, phone if pair else None) if wait else typer.echo(item["sessionId"])


@app.command()
def scan(
    session: Session,
    pair: Annotated[str | None, typer.Option(help="Link this number by code.")] = None,
    url: Url = None,
) -> None:
    """Show a session's code and wait for the scan; starts it if need be."""
    with server(url) as client:
        item = client.get(f"/api/sessions/{session}")
        if item["status"] in ("stopped", "logged_out", "failed", "passkey_required"):
            item = client.post(f"/api/sessions/{session}/start")
        _link(client, item, pair)


def _link(client: Client, item: dict[str, Any], pair: str | None) -> None:
    console = show.console()
    try:
        linked = Linking(client, console, item["sessionId"], pair).wait()
    except KeyboardInterrupt:
        name = item["sessionId"]
        console.print(f"\n{name} still waits for its scan, {show.left(item['scanBy'])} from its start at most.")
        console.print(
            f"Go on: switchboard sessions scan {name}   Undo: switchboard sessions delete {name}", style="dim"
        )
        raise typer.Exit(130) from None
    if not linked:
        raise typer.Exit(1)


@app.command("show")
def show_one(session: Session, url: Url = None, as_json: AsJson = False) -> None:
    """One session, and what happened to it lately."""
    with server(url) as client:
        item = client.get(f"/api/sessions/{session}")
        events = client.get(f"/api/sessions/{session}/events", limit=10)["items"]
    if as_json:
        typer.echo(json.dumps({**item, "events": events}, indent=2, ensure_ascii=False))
        return
    show.console().print(show.details(item, events))


def _command(name: str, text: str) -> None:
    def run(session: Session, url: Url = None) -> None:
        with server(url) as client:
            item = client.post(f"/api/sessions/{session}/{name}")
        typer.echo(_said(name, item))

    run.__doc__ = text
    app.command(name)(run)


def _said(name: str, item: dict[str, Any]) -> str:
    session, linked = item["sessionId"], item["phone"] is not None
    match name:
        case "stop":
            return f"{session} is stopped{'; it stays linked' if linked else ''}."
        case "restart" | "start":
            scan = "no new scan is needed" if linked and not item["scanBy"] else "it waits for a scan: sessions scan"
            return f"{session} is being started; {scan}."
        case "pause":
            return f"{session} is paused, with all sessions of {show.phone(item['phone'])}."
    return f"{session} may send again."


_command("start", "Start a session that does not run.")
_command("stop", "Stop a session. It stays linked, and can be started again.")
_command("restart", "Replace a session's worker. No new scan.")
_command("pause", "Its number sends nothing until it is resumed.")
_command("resume", "End a pause or a restriction.")


@app.command()
def qr(session: Session, file: Annotated[Path, typer.Argument(help="Ends in .png or .svg.")], url: Url = None) -> None:
    """Save a session's current code as a picture, to show to whoever has the phone. It is good for seconds only."""
    if file.suffix not in (".png", ".svg"):
        raise typer.BadParameter("ends in neither .png nor .svg", param_hint="FILE")
    with server(url) as client:
        code = client.get(f"/api/sessions/{session}/qr")
    try:
        show.save_qr(code["qr"], file)
    except OSError as error:
        refuse(f"can't write {file} ({error.strerror})")
    typer.echo(f"{file} holds the code of {session}, good for {show.left(code['expiresAt']) or 'a moment'}.")


@app.command()
def logout(session: Session, yes: Yes = False, url: Url = None) -> None:
    """Unlink a session from its phone. Linking it again needs a scan."""
    if not yes:
        typer.confirm(f"Unlink {session} from its phone? Linking it again needs a scan", abort=True)
    with server(url) as client:
        item = client.post(f"/api/sessions/{session}/logout")
    if item["reason"] == "logout_unconfirmed":
        refuse(f"{session} is logged out here, but {words.reason(item['reason'])} ({item['deviceName']}).")
    typer.echo(f"{session} is logged out.")


@app.command()
def delete(session: Session, yes: Yes = False, url: Url = None) -> None:
    """Log a session out, stop it, and remove its data. Its number's queue stays."""
    with server(url) as client:
        item = client.get(f"/api/sessions/{session}")
        if not yes:
            waiting = f" {item['queueSize']} messages wait for its number, and stay." if item["queueSize"] else ""
            typer.confirm(f"Delete {session} ({show.phone(item['phone']) or 'not linked'})?{waiting}", abort=True)
        answer = client.delete(f"/api/sessions/{session}")
    typer.echo(f"{session} is deleted." if answer["deleted"] else f"{session} is being deleted.")
    if answer["unlinked"] is False:
        refuse(f"WhatsApp could not be told: remove '{item['deviceName']}' under Linked devices on the phone.")


def _set(**fields: str | None) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
