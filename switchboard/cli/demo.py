"""`switchboard demo`: the real thing beside a simulated WhatsApp, so that there is something to see within a minute."""

import asyncio
import random
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import httpx
import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.spinner import Spinner
from rich.text import Text

from switchboard.cli import show
from switchboard.cli.run import fail
from switchboard.settings import Settings, SettingsError, load_settings
from switchboard.welcome import as_typed, own_command

if TYPE_CHECKING:
    from switchboard.demo.scenario import Scenario
    from switchboard.demo.stage import Stage

FOLDER = Path("data") / "demo"
_LOOK_S = 1.0
_LINK_LOOKS = 120


def register(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    port: Annotated[
        int, typer.Option(envvar=["PORT", "ORCH_PORT"], min=1, max=65_535, help="Where it answers.")
    ] = 3000,
    keep: Annotated[
        bool, typer.Option("--keep", help="Go on with the accounts and messages of the last time.")
    ] = False,
) -> None:
    """Show Switchboard at work: real workers, a simulated WhatsApp, accounts that link themselves."""
    from switchboard.demo.simulator import SimulatorFailed
    from switchboard.demo.stage import DemoFailed, check_port, own_folder
    from switchboard.runners.node import WorkerMissing, default_worker

    try:
        default_worker()
        check_port(port)
        with own_folder(FOLDER.absolute(), keep) as folder:
            asyncio.run(_until_interrupted(folder, port))
    except (DemoFailed, SimulatorFailed, WorkerMissing) as reason:
        fail(reason)


async def _until_interrupted(folder: Path, port: int) -> None:
    """Ctrl-C cancels once: what is being taken down then is taken down to the end."""
    console = show.console()
    running = asyncio.create_task(_run(console, folder, port))

    def interrupt() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, lambda: None)
        running.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    with suppress(asyncio.CancelledError):
        await running
    console.print(f"All of it has ended; what it wrote is in {folder}.", style="dim")
    console.print("The next demo begins anew, or goes on with it: make demo ARGS=--keep", style="dim")


async def _run(console: Console, folder: Path, port: int) -> None:
    from switchboard.demo.scenario import Scenario
    from switchboard.demo.stage import opened

    console.print("Starting a simulated WhatsApp, and a Switchboard of its own …", style="dim")
    async with opened(folder, port) as stage:
        scenario = Scenario(stage.url, stage.key, stage.simulator)
        playing = asyncio.create_task(scenario.play(random.SystemRandom()))
        try:
            await _show(console, stage, scenario, playing)
        finally:
            console.print("Ending the demo: workers, store and simulator …", style="dim")
            playing.cancel()
            await asyncio.wait([playing])
            await scenario.close()


async def _show(console: Console, stage: "Stage", scenario: "Scenario", playing: "asyncio.Task[None]") -> None:
    """In a terminal, all the time; elsewhere once, as soon as there is something to see."""
    with Live(console=console, refresh_per_second=4, auto_refresh=console.is_terminal) as live:
        told, tools = False, own_tools(stage.port)
        looks, link = 0, ""
        while True:
            stage.check()
            if looks % _LINK_LOOKS == 0:  # each is good for ten minutes, and the picture stays for longer
                link = stage.link()
            looks += 1
            _check_play(playing)
            sessions, figures = await _look(scenario)
            if console.is_terminal:
                live.update(picture(link, stage.port, stage.key, sessions, figures, tools))
            elif not told and alive(sessions, figures):
                told = True
                console.print(picture(link, stage.port, stage.key, sessions, figures, tools))
            await asyncio.sleep(_LOOK_S)


async def _look(scenario: "Scenario") -> tuple[list[dict[str, Any]], dict[str, Any]]:
    with suppress(httpx.HTTPError):  # busy for a moment, or going down: whoever ended is told by the stage
        return await scenario.sessions(), await scenario.figures()
    return [], {}


def _check_play(playing: "asyncio.Task[None]") -> None:
    from switchboard.demo.stage import DemoFailed

    if playing.done() and not playing.cancelled() and (error := playing.exception()):
        raise DemoFailed(f"the demo's people could not go on: {_first(error)}") from error


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


# --- what it looks like ---


def alive(sessions: list[dict[str, Any]], figures: dict[str, Any]) -> bool:
    """Everybody is linked, and something arrived."""
    linked = [session for session in sessions if session["status"] == "connected"]
    return bool(sessions) and len(linked) == len(sessions) and bool(figures.get("delivered"))


def own_tools(port: int) -> list[str]:
    """Our own commands on the demo, as they can be typed where it was started."""
    from switchboard.demo.simulator import MAIN
    from switchboard.runners.node import find_node

    node = find_node().program
    node = "node" if shutil.which("node") == node else as_typed(Path(node))
    return [
        " ".join([*_settings_of_the_demo(port), own_command(), "sessions list"]),
        f"{node} {as_typed(MAIN)} state --data {FOLDER / 'simulator'}",
    ]


def _settings_of_the_demo(port: int) -> list[str]:
    """Those that tell it from the real installation, whose `.env` is read here, too."""
    usual = Settings.model_fields["orch_port"].default
    try:
        real = load_settings()
    except SettingsError:  # it is told by the command itself
        real = None
    given = [f"DATA_DIR={FOLDER}"]
    if port != usual or (real and real.orch_port != usual):
        given.append(f"ORCH_PORT={port}")
    if real and real.api_key:
        given.append("API_KEY=$KEY")
    return given


def picture(
    link: str, port: int, key: str, sessions: list[dict[str, Any]], figures: dict[str, Any], tools: list[str]
) -> RenderableType:
    url = f"http://localhost:{port}"
    parts: list[RenderableType] = [
        Text.assemble(("Switchboard demo", "bold"), "  Open the dashboard, and link a phone of your own there:"),
        Text(),
        Text(f"  Open {link}", style="bold cyan", overflow="fold"),
        Text("  (it signs in by itself, once, within 10 minutes)", style="dim"),
        Text(),
        Padding(
            show.sessions(sessions) if sessions else Spinner("dots", text=Text(" looking …")),
            (0, 0, 0, 2),
            expand=False,
        ),
        Text(),
        _counted(figures),
        Text(),
        Text.assemble(("Real: ", "bold"), "the server, its store, the pacing, the workers and what they encrypt."),
        Text.assemble(
            ("Simulated: ", "bold"), "WhatsApp, the proxies, and everyone who is written to, reads and answers."
        ),
        Text("Nothing leaves this machine, and the numbers are such that belong to nobody (555-01xx).", style="dim"),
        Text(),
        Text(f"Look around by the API ({url}/docs), in another terminal:"),
        Text(f"  export KEY={key}", style="cyan", no_wrap=True),
        Text(f'  curl -s {url}/api/sessions -H "X-API-Key: $KEY"', style="cyan", no_wrap=True),
        Text(f'  curl -sN {url}/api/events -H "X-API-Key: $KEY"', style="cyan", no_wrap=True),
        *(Text(f"  {tool}", style="cyan", no_wrap=True) for tool in tools),
        Text(),
        Text("Ctrl-C ends all of it.", style="dim"),
    ]
    return Group(*parts)


def _counted(figures: dict[str, Any]) -> Text:
    words = [
        ("sent", "sent"),
        ("delivered", "delivered"),
        ("read", "read"),
        ("failed", "failed"),
        ("waiting", "queueSize"),
    ]
    told = [f"{figures.get(name) or 0} {word}" for word, name in words if word != "failed" or figures.get(name)]
    return Text("  Messages today: " + ", ".join(told) + ".")
