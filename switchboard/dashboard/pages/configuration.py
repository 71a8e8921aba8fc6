"""The settings as a page shows them: by theme, each with what it means and whether it was changed.

What each one means is in the catalogue (`variables.<name>`); a setting belongs to exactly one theme here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

THEMES: Mapping[str, Sequence[str]] = {
    "place": ("data_dir", "sessions_dir", "backups_dir", "max_backups", "orch_host", "orch_port", "gateway_port",
              "trusted_proxies",
              "timezone", "default_country"),
    "access": ("api_key", "webhook_secret", "dashboard_secret", "api_rate_per_minute", "scan_link_minutes"),
    "store": ("redis_url", "key_prefix", "store_fsync"),
    "pace": ("pacing_preset", "pace", "warm_after_days", "hot_after_days", "burst_factor", "burst_slowdown",
             "burst_window_ms", "rate_limit_pause_ms"),
    "sending": ("max_attempts", "retry_base_ms", "outbox_lease_ms", "claim_wait_ms", "queue_room", "max_text",
                "batch_max_rows", "idempotency_hours", "message_retention_days", "stats_days"),
    "recipients": ("recipient_daily_cap", "recipient_hours"),
    "sessions": ("max_sessions_per_phone", "provisioning_interval_ms", "monitor_interval_ms", "watchdog_interval_ms",
                 "ping_timeout_ms", "scan_timeout_ms", "take_over"),
    "proxies": ("proxy_urls", "max_sessions_per_proxy", "allow_direct", "probe_timeout_ms", "probe_interval_ms",
                "low_inventory_places"),
    "workers": ("worker_command", "worker_webhook_url", "worker_memory_mb", "worker_stop_grace_ms",
                "enable_keep_alive", "max_starts_at_once"),
}  # fmt: skip

_MADE = frozenset({"API_KEY", "WEBHOOK_SECRET", "DASHBOARD_SECRET"})
"""Where nobody gives them, they are made (secrets.py)."""
_FOLDERS = {"DATA_DIR": "data", "SESSIONS_DIR": "$DATA_DIR/sessions", "BACKUPS_DIR": "$DATA_DIR/backups"}
"""Their defaults as one writes them: a whole path would only say where this one was started."""
_LEVEL = re.compile(r"pace__[a-z]+__([a-z_]+)")
_PROXY = re.compile(r"proxy_url_[0-9]+")


@dataclass(frozen=True, slots=True)
class Variable:
    """`meaning` names its text, and `unset` what it says of itself without a value. `default` is None unless it was
    changed."""

    name: str
    value: str
    meaning: str
    default: str | None
    unset: str


def meaning_of(variable: str) -> str:
    """Variables of one kind share a meaning: the figures of each trust level, and the proxies."""
    name = variable.lower()
    if level := _LEVEL.fullmatch(name):
        return f"variables.pace_{level[1]}"
    return "variables.proxy_urls" if _PROXY.fullmatch(name) else f"variables.{name}"


def by_theme(effective: Mapping[str, str], defaults: Mapping[str, str]) -> list[tuple[str, list[Variable]]]:
    """In the order of the themes. What no theme names comes last, under `other`, rather than not at all."""
    themes = {name: theme for theme, names in THEMES.items() for name in names}
    found: dict[str, list[Variable]] = {theme: [] for theme in (*THEMES, "other")}
    for name, value in effective.items():
        default = defaults.get(name, "")
        usual = None if value == default else _FOLDERS.get(name, default)
        unset = "settings.made" if name in _MADE else "settings.not_set"
        variable = Variable(name, value, meaning_of(name), usual, unset)
        found[themes.get(_setting_of(name), "other")].append(variable)
    return [(theme, variables) for theme, variables in found.items() if variables]


def _setting_of(variable: str) -> str:
    name = variable.lower()
    if _LEVEL.fullmatch(name):
        return "pace"
    return "proxy_urls" if _PROXY.fullmatch(name) else name
