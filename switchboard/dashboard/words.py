"""What the system's own words mean to a person: reasons, holds, waits and events, in the reader's language.

Whatever is not in the catalogue, because some other worker said it, is shown as it is.
"""

import re
from collections.abc import Mapping

from switchboard.dashboard.catalogue import Texts
from switchboard.dashboard.formats import Formats

_BROKEN = re.compile(r"(failure|http|stream_error|connection_closed)_\w+|connection_closed|connection_lost")
"""A worker's words for a connection that ended and is tried again."""

_COMPOUND = ("crash_loop", "not_started", "worker_exited", "auth_failure")
_LTR, _END = "\u2066", "\u2069"
"""Around a phone number, which reads from left to right in every language."""


_NAMES: Mapping[str, str] = {"account": "phone", "phoneNumber": "phone", "proxyId": "proxy", "messageId": "message"}
"""What an event's fields are called in the texts."""


class Words:
    def __init__(self, texts: Texts, formats: Formats) -> None:
        self._texts = texts
        self._formats = formats

    # --- states and holds ----------------------------------------------------------------------------------------

    def state(self, word: str) -> str:
        return self._known("state", word)

    def reason(self, word: str | None) -> str:
        """Why a session is as it is, and what to do about it."""
        if not word:
            return ""
        stem, colon, detail = word.partition(":")
        if self._texts.has(f"reason.{word}"):
            return self._texts(f"reason.{word}")
        if stem in _COMPOUND and colon:
            return self._texts(f"words.{stem}", detail=self._detail(stem, detail))
        if _BROKEN.fullmatch(word):
            return self._texts("words.broken", detail=word)
        return word

    def _detail(self, stem: str, detail: str) -> str:
        if stem == "crash_loop":
            return self.reason(detail)
        exits = f"words.exit_{detail}"
        if stem == "worker_exited" and self._texts.has(exits):
            return f"{detail}: {self._texts(exits)}"
        return detail

    def hold(self, word: str | None, until: str | None) -> str:
        """Why a number sends nothing, and when or how it goes on."""
        if not word:
            return ""
        said = self._known("words", f"hold_{word}", word)
        if until:
            return self._texts("words.held_until", why=said, when=self._formats.short(until))
        return self._texts("words.held_look" if word == "restricted" else "words.held_open", why=said)

    def fault(self, word: str | None) -> str:
        """What is wrong with a proxy."""
        return self._known("fault", word or "")

    # --- messages ------------------------------------------------------------------------------------------------

    def waiting(self, reason: str | None, until: str | None = None) -> str:
        """Why a message has not left, and when it is expected to."""
        if not reason:
            return ""
        why = self._known("waiting", reason)
        if not until:
            return why
        key = "words.scheduled_for" if reason == "scheduled" else "words.expected"
        return self._texts(key, why=why, when=self._formats.short(until))

    def failure(self, kind: str | None, error: str | None = None) -> str:
        """Why an attempt failed: by its class, with the worker's word for it if that says more."""
        known = self._known("words", f"failure_{kind}", kind or "")
        return self._texts("words.detailed", what=known, detail=error) if error and error != kind else known

    def error(self, word: str | None) -> str:
        """Why a message failed, from the short word that is kept with it."""
        word = word or ""
        key, code = f"error.{word}", word.removeprefix("status_")
        if not self._texts.has(key) and code != word:
            return self._texts("error.any_status", code=code)
        return self._known("error", word)

    # --- events --------------------------------------------------------------------------------------------------

    def event(self, kind: str, fields: Mapping[str, str]) -> str:
        """One sentence about what happened. Names the session if `sessionId` is among the fields."""
        what = self._told(kind, fields)
        if fields.get("late") in ("true", "True"):
            what = self._texts("words.late", what=what)
        session = fields.get("sessionId")
        return self._texts("words.of_session", session=session, what=what) if session else what

    def _told(self, kind: str, fields: Mapping[str, str]) -> str:
        key, whole = f"event.{kind}", f"event.{kind}:{fields.get('reason')}"
        if self._texts.has(whole):  # with this reason it is another sentence
            return self._texts(whole)
        what = self._texts.lenient(key, self._values(kind, fields)) if self._texts.has(key) else kind
        why = self._because(kind, fields)
        return self._texts("words.because", what=what, why=why) if why else what

    def _because(self, kind: str, fields: Mapping[str, str]) -> str:
        reason = fields.get("reason")
        subject, _, what = kind.partition(".")
        if kind == "PROXY_ERROR":
            return self.fault(fields.get("code"))
        if kind == "AUTH_FAILURE":
            return self.reason(f"auth_failure:{fields.get('code', '')}")
        if not reason or what in ("resumed", "restricted"):
            return ""
        if what == "paused":
            return "" if reason == "by_request" else self._known("words", f"hold_{reason}", reason)
        match subject:
            case "session" | "DISCONNECTED":
                return self.reason(reason)
            case "proxy":
                return self.fault(reason)
            case "message":
                return self.failure(reason, fields.get("error"))
        return reason

    def _values(self, kind: str, fields: Mapping[str, str]) -> dict[str, str]:
        values = {_NAMES.get(name, name): value for name, value in fields.items()}
        for name in ("phone", *(["from"] if kind == "message.received" else [])):
            if values.get(name):
                values[name] = f"{_LTR}{self._formats.phone(values[name])}{_END}"
        if "status" in values:
            values["status"] = self.state(values["status"])
        return values

    def _known(self, page: str, word: str, otherwise: str | None = None) -> str:
        key = f"{page}.{word}"
        return self._texts(key) if self._texts.has(key) else word if otherwise is None else otherwise
