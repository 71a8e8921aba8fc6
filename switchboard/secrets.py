"""The secrets of this installation: taken from the settings, else made once and kept in the data folder.

There is no default secret. The file is never overwritten when it can't be read.
"""

import base64
import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import SecretStr

from switchboard.settings import Settings, SettingsError

EVERYWHERE = ("api_key", "webhook_secret")
WITH_DASHBOARD = (*EVERYWHERE, "dashboard_secret")


@dataclass(frozen=True, slots=True)
class Secrets:
    """`generated` names those made by this very call, of which a person is shown the API key, once. Without a dashboard
    there is no secret of it."""

    api_key: str = field(repr=False)
    webhook_secret: str = field(repr=False)
    dashboard_secret: str = field(repr=False)
    generated: frozenset[str]


def ensure_secrets(settings: Settings, names: Sequence[str] = WITH_DASHBOARD) -> Secrets:
    named: dict[str, SecretStr | None] = {name: getattr(settings, name) for name in names}
    given = {name: secret.get_secret_value() for name, secret in named.items() if secret is not None}
    missing = [name for name in names if name not in given]
    path = settings.data_dir / "secrets.json"
    try:
        kept, generated = _keep(path, missing) if missing else ({}, frozenset[str]())
    except OSError as error:
        raise SettingsError(f"DATA_DIR: can't keep the secrets in {path} ({error.strerror})") from error
    known = kept | given
    return Secrets(**{name: known.get(name, "") for name in WITH_DASHBOARD}, generated=generated)


def _keep(path: Path, missing: list[str]) -> tuple[dict[str, str], frozenset[str]]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone_in(path.parent):
        kept = _read(path)
        new = {name: _generate(name) for name in missing if name not in kept}
        if new:
            _write(path, kept | new)
    return kept | new, frozenset(new)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Parts that start at the same moment must agree on one set of secrets."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(path: Path) -> dict[str, str]:
    try:
        kept = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise _broken(path) from error
    if not isinstance(kept, dict) or not all(value and isinstance(value, str) for value in kept.values()):
        raise _broken(path)
    path.chmod(0o600)
    return kept


def _broken(path: Path) -> SettingsError:
    return SettingsError(
        f"DATA_DIR: {path} can't be read as secrets. Put its backup back, or delete it to have "
        "new secrets made (every caller then needs the new ones)."
    )


def _write(path: Path, kept: dict[str, str]) -> None:
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(kept, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _generate(name: str) -> str:
    match name:
        case "api_key":
            return "sk_" + secrets.token_urlsafe(32)
        case "webhook_secret":
            return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    return secrets.token_urlsafe(32)
