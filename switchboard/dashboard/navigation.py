"""What is in the menu, and in which order. A new page is one line here, one module in `pages/` and its texts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """`key` names its text (`nav.<key>`) and its icon; a page says which entry is its own."""

    key: str
    path: str


@dataclass(frozen=True, slots=True)
class Group:
    key: str
    entries: tuple[Entry, ...]


MENU = (
    Group("numbers", (
        Entry("overview", "/"),
        Entry("proxies", "/proxies"),
        Entry("anti_ban", "/anti-ban"),
    )),
    Group("messages", (
        Entry("send", "/send"),
        Entry("messages", "/messages"),
        Entry("batches", "/batches"),
        Entry("dead_letters", "/dead-letters"),
        # here: suppressions
    )),
    Group("system", (
        Entry("log", "/log"),
        Entry("health", "/status"),
        Entry("settings", "/settings"),
        # here: webhooks, alerts, backups
        Entry("api", "/docs"),
    )),
)  # fmt: skip
