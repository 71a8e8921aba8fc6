"""Settings: the defaults everyone relies on, and errors that name the variable."""

import json
import os
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from switchboard.cli import build
from switchboard.domain.hours import DAY_MS, Hours
from switchboard.domain.trust import CONSERVATIVE, STANDARD, TrustLevel
from switchboard.settings import HIDDEN, Settings, SettingsError, load_settings


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.lower() in Settings.model_fields or name.startswith(("PACE__", "PROXY_URL")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def with_environment(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Settings:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return load_settings()


def error_of(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    with pytest.raises(SettingsError) as caught:
        with_environment(monkeypatch, **variables)
    return str(caught.value)


def test_nothing_set_gives_the_documented_defaults(tmp_path: Path) -> None:
    settings = load_settings()
    figures = {name: value for name, value in settings if isinstance(value, int | float | str)}
    assert figures == {
        "max_backups": 7,
        "api_rate_per_minute": 6000,
        "scan_link_minutes": 60,
        "key_prefix": "switchboard:",
        "store_fsync": "always",
        "orch_host": "127.0.0.1",
        "orch_port": 3000,
        "gateway_port": 3002,
        "trusted_proxies": "",
        "max_sessions_per_proxy": 4,
        "max_sessions_per_phone": 4,
        "provisioning_interval_ms": 2000,
        "monitor_interval_ms": 30_000,
        "watchdog_interval_ms": 60_000,
        "ping_timeout_ms": 180_000,
        "scan_timeout_ms": 300_000,
        "allow_direct": False,
        "take_over": False,
        "probe_timeout_ms": 10_000,
        "probe_interval_ms": 60_000,
        "low_inventory_places": 2,
        "worker_memory_mb": 512,
        "worker_stop_grace_ms": 10_000,
        "enable_keep_alive": True,
        "max_starts_at_once": 4,
        "pacing_preset": "standard",
        "warm_after_days": 3,
        "hot_after_days": 14,
        "burst_factor": 3.0,
        "burst_slowdown": 2.0,
        "burst_window_ms": 600_000,
        "rate_limit_pause_ms": 30 * 60_000,
        "max_attempts": 3,
        "retry_base_ms": 30_000,
        "outbox_lease_ms": 60_000,
        "claim_wait_ms": 25_000,
        "queue_room": 1000,
        "max_text": 4095,
        "batch_max_rows": 10_000,
        "idempotency_hours": 24,
        "message_retention_days": 30,
        "stats_days": 90,
        "recipient_daily_cap": 3,
    }
    assert settings.recipient_hours == Hours.parse("08:00-22:00")
    assert settings.data_dir == tmp_path / "data"
    assert settings.sessions_dir == tmp_path / "data" / "sessions"
    assert settings.backups_dir == tmp_path / "data" / "backups"


def test_no_secret_has_a_default() -> None:
    settings = load_settings()
    assert settings.api_key is None
    assert settings.webhook_secret is None
    assert settings.dashboard_secret is None
    assert settings.redis_url is None


def test_settings_cannot_be_changed_once_read() -> None:
    settings = load_settings()
    with pytest.raises(ValidationError):
        settings.orch_port = 1  # type: ignore[misc]


def test_the_environment_wins_over_the_env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("ORCH_PORT=4000\nGATEWAY_PORT=4002\nSOMETHING_ELSE=1\n")
    settings = with_environment(monkeypatch, ORCH_PORT="5000")
    assert (settings.orch_port, settings.gateway_port) == (5000, 4002)


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = with_environment(monkeypatch, API_KEY="", ORCH_PORT="")
    assert settings.api_key is None
    assert settings.orch_port == 3000


def test_proxies_are_collected_by_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("PROXY_URL_1=socks5h://file-1:1\nPROXY_URL_2=socks5h://file-2:1\n")
    settings = with_environment(monkeypatch, PROXY_URL_10="socks5h://env-10:1", PROXY_URL_2="socks5h://env-2:1")
    urls = [url.get_secret_value() for url in settings.proxy_urls]
    assert urls == ["socks5h://file-1:1", "socks5h://env-2:1", "socks5h://env-10:1"]


def test_folders_follow_the_data_folder_unless_set(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = with_environment(monkeypatch, DATA_DIR="/srv/sb", BACKUPS_DIR="/mnt/backups")
    assert settings.sessions_dir == Path("/srv/sb/sessions")
    assert settings.backups_dir == Path("/mnt/backups")


def test_a_preset_is_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().trust_table().levels == STANDARD
    assert with_environment(monkeypatch, PACING_PRESET="conservative").trust_table().levels == CONSERVATIVE


def test_single_figures_are_put_over_the_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    table = with_environment(
        monkeypatch,
        PACE__COLD__DAILY="7",
        PACE__WARM__PER_MINUTE="4",
        PACE__HOT__BASE_DELAY_MS="900",
        PACE__HOT__JITTER_MS="0",
        PACE__HOT__HOURS="00:00-24:00",
        WARM_AFTER_DAYS="1",
        HOT_AFTER_DAYS="2",
    ).trust_table()
    cold, warm, hot = (table.levels[level] for level in TrustLevel)
    assert (cold.daily, cold.per_minute) == (7, 5)
    assert (warm.daily, warm.per_minute) == (100, 4)
    assert (hot.base_delay_ms, hot.jitter_ms, hot.hours.always) == (900, 0, True)
    assert (table.warm_after_ms, table.hot_after_ms) == (DAY_MS, 2 * DAY_MS)


def test_a_time_zone_and_a_country_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = with_environment(monkeypatch, TIMEZONE="Asia/Jerusalem", DEFAULT_COUNTRY="il")
    assert settings.timezone == ZoneInfo("Asia/Jerusalem")
    assert settings.default_country == "IL"


def test_the_time_zone_is_the_systems_when_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tzlocal.get_localzone_name", lambda: "Asia/Tokyo")
    assert load_settings().timezone == ZoneInfo("Asia/Tokyo")


def test_hours_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = with_environment(monkeypatch, RECIPIENT_HOURS="06:30-24:00")
    assert str(settings.recipient_hours) == "06:30-24:00"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_TEXT", "0"),
        ("QUEUE_ROOM", "-1"),
        ("ORCH_PORT", "70000"),
        ("ORCH_PORT", "http"),
        ("BURST_FACTOR", "nan"),
        ("BURST_SLOWDOWN", "0.5"),
        ("TIMEZONE", "Mars/Olympus"),
        ("DEFAULT_COUNTRY", "UK"),
        ("STORE_FSYNC", "no"),
        ("PACING_PRESET", "reckless"),
        ("REDIS_URL", "http://store"),
        ("RECIPIENT_HOURS", "8-22"),
        ("PACE__COLD__HOURS", "09:00-25:00"),
        ("PACE__WARM__DAILY", "0"),
        ("PACE__HOT__DALIY", "5"),
        ("HOT_AFTER_DAYS", "3"),
        ("PROXY_URL", "socks5h://proxy:1080"),
        ("PROXY_URLS", "socks5h://proxy:1080"),
        ("PROXY_URL_3", "http://proxy:1080"),
    ],
)
def test_a_bad_value_is_refused_by_the_name_of_its_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (line,) = error_of(monkeypatch, **{name: value}).splitlines()
    assert line.startswith(f"{name}: ")


def test_every_bad_variable_gets_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = error_of(monkeypatch, MAX_TEXT="x", PROXY_URL="socks5h://p:1", PROXY_URL_2="p").splitlines()
    assert sorted(line.partition(":")[0] for line in lines) == ["MAX_TEXT", "PROXY_URL", "PROXY_URL_2"]


def test_an_error_does_not_repeat_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "hunter2" not in error_of(monkeypatch, REDIS_URL="http://u:hunter2@store")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://store:6379/0", "redis://store:6379/0"),
        ("rediss://u:hunter2@store:6379/0", f"rediss://{HIDDEN}@store:6379/0"),
        ("redis://:a/hunter2@b@store", f"redis://{HIDDEN}@store"),
        ("unix:///run/s.sock?db=1&password=hunter2", f"unix:///run/s.sock?db=1&password={HIDDEN}"),
    ],
)
def test_the_store_address_is_shown_without_credentials(url: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_environment(monkeypatch, REDIS_URL=url).effective()["REDIS_URL"] == shown


def test_a_dashboard_secret_that_could_be_guessed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    told = error_of(monkeypatch, DASHBOARD_SECRET="hunter2")
    assert told.startswith("DASHBOARD_SECRET: ")
    assert "16" in told
    assert "hunter2" not in told


def test_effective_settings_hide_every_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = with_environment(
        monkeypatch,
        API_KEY="hunter2://x",
        WEBHOOK_SECRET="hunter2",
        DASHBOARD_SECRET="hunter2 hunter2 hunter2",
        PROXY_URL_1="socks5h://u:hunter2@proxy:1080",
        PACE__COLD__DAILY="7",
    )
    effective = settings.effective()
    assert "hunter2" not in repr(effective)
    assert "hunter2" not in repr(settings)
    assert effective["API_KEY"] == HIDDEN
    assert effective["PROXY_URL_1"] == f"socks5h://{HIDDEN}@proxy:1080"
    assert effective["PACE__COLD__DAILY"] == "7"
    assert effective["PACE__HOT__HOURS"] == "07:00-23:00"


def test_the_config_command_prints_what_is_in_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "hunter2")
    monkeypatch.setenv("ORCH_PORT", "4567")
    printed = CliRunner().invoke(build(), ["config", "--json"])
    assert printed.exit_code == 0
    assert json.loads(printed.stdout) == load_settings().effective()
    table = CliRunner().invoke(build(), ["config"])
    assert "4567" in table.stdout
    assert "hunter2" not in table.stdout


@pytest.mark.parametrize("command", ["config", "up"])
def test_a_command_with_bad_settings_ends_with_one_clear_line(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCH_PORT", "x")
    result = CliRunner().invoke(build(), [command])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("switchboard: ORCH_PORT: ")


def test_credentials_in_any_address_are_hidden() -> None:
    shown = Settings(
        _env_file=None, worker_webhook_url="http://me:hunter2@host/api/webhook", worker_command="run http://a:hunter2@b"
    ).effective()
    assert "hunter2" not in str(shown)
    assert shown["WORKER_WEBHOOK_URL"] == f"http://{HIDDEN}@host/api/webhook"
