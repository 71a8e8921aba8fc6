"""The way to a running Switchboard: its HTTP API, with the key of this installation. Errors become one clear line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import httpx
import typer

from switchboard.settings import Settings, SettingsError, load_settings

_PATIENCE_S = 40.0
_NOT_RUNNING = "is it running? switchboard up; on another port? set ORCH_PORT as you did for it"


class ApiError(Exception):
    """What the server answered, in its own words."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Client:
    def __init__(self, url: str, key: str, transport: httpx.BaseTransport | None = None) -> None:
        self.url = url
        self._http = httpx.Client(
            base_url=url, timeout=_PATIENCE_S, headers={"X-API-Key": key}, trust_env=False, transport=transport
        )

    def call(self, method: str, path: str, body: dict[str, Any] | None = None, **query: Any) -> Any:
        try:
            answer = self._http.request(method, path, json=body, params=query)
        except httpx.TransportError as error:
            raise ApiError(0, "NOT_RUNNING", f"nothing answers on {self.url} ({_why(error)})") from None
        try:
            parsed = answer.json()
        except ValueError:
            parsed = {}
        if answer.is_success:
            return parsed
        code, text = parsed.get("error", ""), parsed.get("message", f"HTTP {answer.status_code}")
        raise ApiError(answer.status_code, code, text)

    def get(self, path: str, **query: Any) -> Any:
        return self.call("GET", path, **query)

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self.call("POST", path, body)

    def delete(self, path: str, **query: Any) -> Any:
        return self.call("DELETE", path, **query)

    def pages(self, path: str) -> Iterator[Any]:
        cursor: str | None = None
        while True:
            page = self.get(path, limit=200, **({"cursor": cursor} if cursor else {}))
            yield from page["items"]
            cursor = page["nextCursor"]
            if cursor is None:
                return


def connect(url: str | None = None) -> Client:
    """To the Switchboard that these settings describe."""
    try:
        settings = load_settings()
    except SettingsError as reason:
        refuse(reason)
    if url and "://" not in url:
        url = f"http://{url}"
    return Client(url or settings.own_url(settings.orch_port), _key(settings))


def _key(settings: Settings) -> str:
    if settings.api_key is not None:
        return settings.api_key.get_secret_value()
    kept = Path(settings.data_dir) / "secrets.json"
    try:
        return str(json.loads(kept.read_text("utf-8"))["api_key"])
    except FileNotFoundError:
        refuse(f"there is no key in {kept}. Start Switchboard first (switchboard up), or set API_KEY.")
    except (OSError, ValueError, KeyError):
        refuse(f"{kept} can't be read. Run this as the user who started Switchboard, or set API_KEY.")


def _why(error: httpx.TransportError) -> str:
    return "it took too long" if isinstance(error, httpx.TimeoutException) else _NOT_RUNNING


def refuse(reason: object) -> NoReturn:
    typer.echo(f"switchboard: {reason}", err=True)
    raise typer.Exit(2)
