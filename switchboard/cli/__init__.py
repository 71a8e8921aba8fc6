"""The `switchboard` command. One file per group of commands; the work is done by the parts they start."""

import typer

import switchboard
from switchboard.cli import config, demo, keys, opening, password, proxies, run, sessions


def build() -> typer.Typer:
    app = typer.Typer(
        help="A self-hosted WhatsApp orchestrator.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,  # they would print local variables, secrets among them
    )
    run.register(app)
    config.register(app)
    demo.register(app)
    opening.register(app)
    app.add_typer(sessions.app, name="sessions")
    app.add_typer(proxies.app, name="proxies")
    app.add_typer(keys.app, name="keys")
    app.add_typer(password.app, name="password")
    app.command("version")(version)
    return app


def version() -> None:
    """Print the version."""
    typer.echo(switchboard.__version__)


def main() -> None:
    build()()
