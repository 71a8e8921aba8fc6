"""All settings, read once from the environment and `.env` into one frozen object.

Every default lives here and nowhere else. Secrets that are missing are made in `secrets.py`, not here.
"""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import phonenumbers
import pydantic_settings
import tzlocal
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    NonNegativeInt,
    PositiveInt,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from switchboard.domain.hours import DAY_MS, Hours
from switchboard.domain.ids import natural
from switchboard.domain.proxies import ProxyUrl
from switchboard.domain.trust import PRESETS, Limits, Overrides, TrustLevel, TrustTable

HIDDEN = "********"
_REDIS_SCHEMES = ("redis://", "rediss://", "redis+sentinel://", "unix://")
# Up to the last @, so that a password with a slash or an @ of its own is hidden whole.
_CREDENTIALS = re.compile(r"(?<=://).*(?=@)|(?<=[?&]username=)[^&]*|(?<=[?&]password=)[^&]*")


class SettingsError(Exception):
    """Something in the settings is wrong; each line of the message names the variable and the reason."""


def _parse_hours(value: object) -> object:
    return Hours.parse(value) if isinstance(value, str) else value


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _system_zone() -> ZoneInfo:
    try:
        return ZoneInfo(tzlocal.get_localzone_name() or "UTC")
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise SettingsError(f"TIMEZONE: not set, and the system's own can't be told ({error})") from error


Port = Annotated[int, Field(ge=1, le=65535)]
LongSecret = Annotated[SecretStr, Field(min_length=16)]
Factor = Annotated[float, Field(ge=1, allow_inf_nan=False)]
Folder = Annotated[Path, AfterValidator(_absolute)]
DayHours = Annotated[InstanceOf[Hours], BeforeValidator(_parse_hours), NoDecode]


class PaceLevel(BaseModel):
    """Single figures of one trust level (`PACE__WARM__PER_MINUTE`); what is not set comes from the preset."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    daily: PositiveInt | None = None
    per_minute: PositiveInt | None = None
    base_delay_ms: NonNegativeInt | None = None
    jitter_ms: NonNegativeInt | None = None
    hours: DayHours | None = None

    def overrides(self) -> Overrides:
        return Overrides(self.daily, self.per_minute, self.base_delay_ms, self.jitter_ms, self.hours)


class Pace(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    cold: PaceLevel = PaceLevel()
    warm: PaceLevel = PaceLevel()
    hot: PaceLevel = PaceLevel()


class _NumberedProxies(PydanticBaseSettingsSource):
    """Collects PROXY_URL_1, PROXY_URL_2, … by their number. Gaps are fine; one without a number is passed on, too,
    so that it is refused instead of overlooked."""

    def __init__(self, cls: type[BaseSettings], *sources: PydanticBaseSettingsSource) -> None:
        super().__init__(cls)
        self._variables: dict[str, str | None] = {}
        for source in sources:
            self._variables |= getattr(source, "env_vars", {})

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        raise NotImplementedError  # this source answers for one field only, in __call__

    def __call__(self) -> dict[str, Any]:
        named = {
            name.upper(): value
            for name, value in self._variables.items()
            if value and re.fullmatch(r"proxy_url(_\d+)?", name, re.IGNORECASE)
        }
        return {"proxy_urls": {name: named[name] for name in sorted(named, key=natural)}} if named else {}


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        frozen=True,
        extra="ignore",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        hide_input_in_errors=True,
    )

    data_dir: Folder = Field(default=Path("data"), validate_default=True)
    sessions_dir: Folder = Field(default_factory=lambda known: known["data_dir"] / "sessions")
    backups_dir: Folder = Field(default_factory=lambda known: known["data_dir"] / "backups")
    max_backups: PositiveInt = 7

    api_key: SecretStr | None = None
    webhook_secret: SecretStr | None = None
    dashboard_secret: LongSecret | None = None
    api_rate_per_minute: PositiveInt = 6000
    scan_link_minutes: PositiveInt = 60

    redis_url: SecretStr | None = None
    key_prefix: str = "switchboard:"
    store_fsync: Literal["always", "everysec"] = "always"

    orch_host: str = "127.0.0.1"
    orch_port: Port = 3000
    gateway_port: Port = 3002
    trusted_proxies: str = ""  # whose word counts on who asks and by https; for uvicorn: addresses by commas

    timezone: ZoneInfo = Field(default_factory=_system_zone)
    default_country: str | None = None

    max_sessions_per_proxy: PositiveInt = 4
    max_sessions_per_phone: PositiveInt = 4
    proxy_urls: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    provisioning_interval_ms: PositiveInt = 2000
    monitor_interval_ms: PositiveInt = 30_000
    watchdog_interval_ms: PositiveInt = 60_000
    ping_timeout_ms: PositiveInt = 180_000
    scan_timeout_ms: PositiveInt = 300_000
    allow_direct: bool = False
    take_over: bool = False
    probe_timeout_ms: PositiveInt = 10_000
    probe_interval_ms: PositiveInt = 60_000
    low_inventory_places: NonNegativeInt = 2

    worker_command: str | None = None  # not set: the worker of this project, see runners/node.py
    worker_webhook_url: str | None = None
    worker_memory_mb: PositiveInt = 512
    worker_stop_grace_ms: PositiveInt = 10_000
    enable_keep_alive: bool = True
    max_starts_at_once: PositiveInt = 4

    pacing_preset: Literal["standard", "conservative"] = "standard"
    pace: Pace = Pace()
    warm_after_days: PositiveInt = 3
    hot_after_days: PositiveInt = 14
    burst_factor: Factor = 3.0
    burst_slowdown: Factor = 2.0
    burst_window_ms: PositiveInt = 600_000
    rate_limit_pause_ms: PositiveInt = 1_800_000

    max_attempts: PositiveInt = 3
    retry_base_ms: PositiveInt = 30_000
    outbox_lease_ms: PositiveInt = 60_000
    claim_wait_ms: PositiveInt = 25_000

    queue_room: PositiveInt = 1000
    max_text: PositiveInt = 4095
    batch_max_rows: PositiveInt = 10_000
    idempotency_hours: PositiveInt = 24
    message_retention_days: PositiveInt = 30
    stats_days: PositiveInt = 90

    recipient_daily_cap: PositiveInt = 3
    recipient_hours: DayHours = Hours.parse("08:00-22:00")

    @field_validator("redis_url")
    @classmethod
    def _known_scheme(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(_REDIS_SCHEMES):
            raise ValueError(f"must start with one of {', '.join(_REDIS_SCHEMES)}")
        return url

    @field_validator("proxy_urls", mode="before")
    @classmethod
    def _only_socks5h(cls, named: object) -> object:
        if named == ():
            return named
        if not isinstance(named, Mapping):
            raise ValueError("name the proxies one by one: PROXY_URL_1, PROXY_URL_2 and so on")
        if wrong := [f"{name}: {reason}" for name, url in named.items() if (reason := _proxy_fault(name, url))]:
            raise ValueError("\n".join(wrong))
        return tuple(named.values())

    @field_validator("worker_command")
    @classmethod
    def _a_command(cls, command: str | None) -> str | None:
        if command is not None and not shlex.split(command):
            raise ValueError("is empty")
        return command

    @field_validator("default_country")
    @classmethod
    def _known_country(cls, country: str | None) -> str | None:
        if country is not None and country.upper() not in phonenumbers.SUPPORTED_REGIONS:
            raise ValueError(f"{country!r} is not a two-letter country code such as IL or GB")
        return country and country.upper()

    @field_validator("hot_after_days")
    @classmethod
    def _hot_after_warm(cls, days: int, info: ValidationInfo) -> int:
        if days <= info.data.get("warm_after_days", 0):
            raise ValueError("must be more than WARM_AFTER_DAYS")
        return days

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        proxies = _NumberedProxies(settings_cls, dotenv_settings, env_settings)
        return init_settings, proxies, env_settings, dotenv_settings

    def own_url(self, port: int) -> str:
        """Where what listens on `ORCH_HOST` is reached from this machine."""
        anywhere = self.orch_host in ("0.0.0.0", "::")  # noqa: S104 - only compared with
        host = "127.0.0.1" if anywhere else self.orch_host
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def trust_table(self) -> TrustTable:
        """The preset with the single figures of `pace` put over it."""
        preset = PRESETS[self.pacing_preset]
        single: Mapping[TrustLevel, PaceLevel] = {
            TrustLevel.COLD: self.pace.cold,
            TrustLevel.WARM: self.pace.warm,
            TrustLevel.HOT: self.pace.hot,
        }
        levels = {level: single[level].overrides().apply(preset[level]) for level in TrustLevel}
        return TrustTable(levels, self.warm_after_days * DAY_MS, self.hot_after_days * DAY_MS)

    def defaults(self) -> dict[str, str]:
        """The same variables as `effective` if none of them were set; those that follow another one follow it here."""
        plain = type(self).model_construct(data_dir=self.data_dir, pacing_preset=self.pacing_preset)
        return plain.effective() | {
            "DATA_DIR": str(_absolute(Path("data"))),
            "PACING_PRESET": str(type(self).model_fields["pacing_preset"].default),
        }

    def effective(self) -> dict[str, str]:
        """Every variable with its value as text, in order, and nothing secret. Unset ones are empty."""
        shown: dict[str, str] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if name == "pace":
                shown |= _shown_levels(self.trust_table().levels)
            elif name == "proxy_urls":
                shown |= {f"PROXY_URL_{n}": _shown_url(url.get_secret_value()) for n, url in enumerate(value, 1)}
            elif value is None:
                shown[name.upper()] = ""
            elif isinstance(value, SecretStr):
                shown[name.upper()] = _shown_url(value.get_secret_value()) if name == "redis_url" else HIDDEN
            else:
                shown[name.upper()] = _shown_url(str(value))
        return shown


def _proxy_fault(name: str, url: str) -> str | None:
    if name == "PROXY_URL":
        return "is not used without a number; name it PROXY_URL_1"
    try:
        ProxyUrl.parse(url)
    except ValueError as error:
        return str(error)
    return None


def _shown_url(text: str) -> str:
    return _CREDENTIALS.sub(HIDDEN, text)


def _shown_levels(levels: Mapping[TrustLevel, Limits]) -> dict[str, str]:
    return {
        f"PACE__{level}__{figure}".upper(): str(getattr(limits, figure))
        for level, limits in levels.items()
        for figure in PaceLevel.model_fields
    }


def load_settings(env_file: Path | None = Path(".env")) -> Settings:
    """Read the settings, or raise SettingsError with one line for each bad variable."""
    try:
        return Settings(_env_file=env_file)
    except ValidationError as error:
        raise SettingsError("\n".join(_lines(error))) from None
    except pydantic_settings.SettingsError as error:
        raise SettingsError(str(error)) from None


def _lines(error: ValidationError) -> list[str]:
    return [
        _line("__".join(map(str, one["loc"])).upper(), _reason(one["type"], one["msg"]))
        for one in error.errors(include_input=False, include_url=False)
        # A default that is derived from a bad value is no mistake of its own.
        if one["type"] != "default_factory_not_called"
    ]


def _line(name: str, reason: str) -> str:
    """Proxies are one field of many variables: what is wrong with them names those itself."""
    return reason if reason.startswith("PROXY_URL") else f"{name}: {reason}"


def _reason(kind: str, message: str) -> str:
    return "there is no such setting" if kind == "extra_forbidden" else message.removeprefix("Value error, ")
