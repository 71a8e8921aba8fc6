"""`switchboard open`: a link that opens the dashboard without a password, for whoever may read the data folder."""

import httpx
import typer

from switchboard.cli.client import refuse
from switchboard.settings import Settings, SettingsError, load_settings

_PATIENCE_S = 10.0


def register(app: typer.Typer) -> None:
    app.command("open")(open_dashboard)


def open_dashboard() -> None:
    """Print a link that opens the dashboard: good once, for 10 minutes."""
    try:
        link = _link(load_settings())
    except SettingsError as reason:
        refuse(reason)
    typer.echo(link)
    typer.echo("It signs in by itself, once, within 10 minutes.", err=True)


def _link(settings: Settings) -> str:
    from switchboard.dashboard.access.one_time_links import one_time_url
    from switchboard.secrets import ensure_secrets
    from switchboard.wiring import system_clock

    kept = settings.data_dir / "secrets.json"
    if settings.dashboard_secret is None and not kept.exists():  # made here, nobody would be shown the new key
        refuse(f"there are no secrets in {kept}. Start Switchboard first (switchboard up).")
    url = settings.own_url(settings.orch_port)
    link = one_time_url(url, ensure_secrets(settings).dashboard_secret, system_clock())
    _check(link, url)
    return link.replace("127.0.0.1", "localhost", 1)


def _check(link: str, url: str) -> None:
    """Only to look at it does not use it up."""
    try:
        answer = httpx.get(link, timeout=_PATIENCE_S, trust_env=False)
    except httpx.TransportError:
        refuse(f"nothing answers on {url} (is it running? switchboard up; on another port? set ORCH_PORT)")
    if not answer.is_success:
        refuse(f"what answers on {url} does not know this installation's secret (set DATA_DIR as you did for it)")
