"""Proxies: how one is written down, and which one of the pool a session gets. Reaches none of them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import AddressValueError, IPv6Address
from urllib.parse import quote, unquote_to_bytes

from switchboard.domain.ids import natural

SCHEME = "socks5h"
_LONGEST_CREDENTIAL = 255
"""In bytes: RFC 1929 counts them in one byte."""

_SHAPE = "write socks5h://user:password@host:port"
_LABEL = r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*\.?")
_REFUSED_SCHEMES = {
    "socks5": "socks5:// is refused: names would be resolved here and leak past the proxy; write socks5h://",
    "http": "http:// is refused: only SOCKS5 carries all that a worker sends; write socks5h://",
    "https": "https:// is refused: only SOCKS5 carries all that a worker sends; write socks5h://",
}


# As providers list theirs. A password may hold colons; a port of digits tells this from anything else.
_LISTED = re.compile(r"(?P<host>\[[^\]@]*\]|[^:@\[\]]+):(?P<port>[0-9]{1,5}):(?P<user>[^:]+):(?P<password>.+)")
_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class ProxyUrlError(ValueError):
    """Says in one sentence what is wrong with a proxy's URL. Repeats nothing of it: errors end up in logs.

    `code` is the same for programs, and for translations.
    """

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True, slots=True)
class ProxyUrl:
    """Without `user` the proxy asks for no credentials. An IPv6 `host` has no brackets here."""

    host: str
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, text: str) -> "ProxyUrl":
        """Not `urlsplit`: it drops line breaks silently, and its errors repeat what they were given."""
        _check_visible(text)
        scheme, separator, rest = text.partition("://")
        _check_scheme(scheme.lower() if separator else "")
        if re.search(r"[/?#]", rest):
            raise ProxyUrlError(
                "after_port", "nothing may follow the port; in a user or password write / as %2F, ? as %3F, # as %23"
            )
        credentials, at, address = rest.rpartition("@")
        user, password = _credentials(credentials) if at else ("", "")
        host, port = _host_and_port(address)
        return cls(host, port, user, password)

    @classmethod
    def parse_pasted(cls, text: str) -> "ProxyUrl":
        """From a person: also host:port:user:password, in which every character stands for itself."""
        _check_visible(text)
        listed = None if _HAS_SCHEME.match(text) else _LISTED.fullmatch(text)
        if listed is None:
            return cls.parse(text)
        user, password = quote(listed["user"], safe=""), quote(listed["password"], safe="")
        return cls.parse(f"{SCHEME}://{user}:{password}@{listed['host']}:{listed['port']}")

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """With the credentials: for the worker, never for showing."""
        credentials = quote(self.user, safe="") + (":" + quote(self.password, safe="") if self.password else "")
        return f"{SCHEME}://{credentials}@{self.address}" if credentials else f"{SCHEME}://{self.address}"

    def same_place(self, other: "ProxyUrl") -> bool:
        """Whether it is the same proxy, though its password may have changed."""
        return (self.host.lower(), self.port, self.user) == (other.host.lower(), other.port, other.user)


def _check_visible(text: str) -> None:
    if " " in text or not text.isprintable():
        raise ProxyUrlError(
            "invisible", "the URL holds white space or an invisible character; remove it, or write it as %20"
        )


def _check_scheme(scheme: str) -> None:
    if not scheme:
        raise ProxyUrlError("no_scheme", f"the URL does not say what kind of proxy it is; {_SHAPE}")
    if scheme in _REFUSED_SCHEMES:
        raise ProxyUrlError("socks5" if scheme == "socks5" else "http", _REFUSED_SCHEMES[scheme])
    if scheme != SCHEME:
        raise ProxyUrlError("unknown_scheme", f"this kind of proxy is not known; {_SHAPE}")


def _credentials(text: str) -> tuple[str, str]:
    user, _, password = text.partition(":")
    if not user:
        raise ProxyUrlError("no_user", f"there is no user in front of the {'password' if password else '@'}; {_SHAPE}")
    return _decoded(user, "user"), _decoded(password, "password")


def _decoded(text: str, name: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise ProxyUrlError(
            "percent", f"a % in the {name} is not followed by two hexadecimal digits; write % itself as %25"
        )
    raw = unquote_to_bytes(text)
    if len(raw) > _LONGEST_CREDENTIAL:
        raise ProxyUrlError(
            "too_long", f"the {name} is longer than {_LONGEST_CREDENTIAL} bytes, which SOCKS5 cannot carry"
        )
    # Bytes that are no UTF-8 become surrogates, which are not printable: no exception ever holds the password.
    decoded = raw.decode(errors="surrogateescape")
    if not decoded.isprintable():
        raise ProxyUrlError("unreadable", f"the {name} holds a control or invisible character, or is no UTF-8")
    return decoded


def _host_and_port(text: str) -> tuple[str, int]:
    if text.startswith("["):
        inside, _, after = text[1:].partition("]")
        host = _ipv6(inside)
        if host is None or not after.startswith(":"):
            raise ProxyUrlError(
                "brackets", "the brackets do not hold an IPv6 address with a port after it, like [2001:db8::7]:1080"
            )
        return host, _port(after[1:])
    host, colon, port = text.partition(":")
    if not host:
        raise ProxyUrlError("no_host", f"the host is missing; {_SHAPE}")
    if ":" in port:
        raise ProxyUrlError("colons", f"there are too many colons; {_SHAPE}, and an IPv6 address in brackets")
    if not _HOST_NAME.fullmatch(host):
        raise ProxyUrlError(
            "host", "the host is neither a name nor an address; write a name outside ASCII in its xn-- form"
        )
    if not colon:
        raise ProxyUrlError("no_port", f"the port is missing, and none is assumed; {_SHAPE}")
    return host.lower(), _port(port)


def _ipv6(text: str) -> str | None:
    try:
        return None if "%" in text else str(IPv6Address(text))
    except AddressValueError:
        return None


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65535:
        raise ProxyUrlError("port", "the port is not a number from 1 to 65535")
    return int(text)


@dataclass(frozen=True, slots=True)
class Proxy:
    """One of the pool as it stands now. `host` is `host:port`, for showing; `sessions` are those that leave by it."""

    id: str
    host: str
    ok: bool
    bad_at: int | None
    sessions: frozenset[str]
    capacity: int
    reason: str | None = None

    @property
    def room(self) -> int:
        return max(0, self.capacity - len(self.sessions))


class Reason(StrEnum):
    EMPTY_POOL = "empty_pool"
    POOL_FULL = "pool_full"  # there are good ones, and none has room
    ALL_BAD = "all_bad"
    OVERRIDE_UNKNOWN = "override_unknown"
    OVERRIDE_BAD = "override_bad"
    OVERRIDE_FULL = "override_full"


@dataclass(frozen=True, slots=True)
class NoPlace:
    reason: Reason


Choice = Proxy | NoPlace


def choose(
    proxies: Iterable[Proxy], *, override: str | None = None, sticky: str | None = None, leaving: str | None = None
) -> Choice:
    """The proxy for one session, which must not itself be counted in any `sessions`.

    `override` is what the operator demands: used or refused, never replaced by another. `sticky` is where the phone
    left from before: WhatsApp sees the same address again. `leaving` has just failed this session, and counts as bad.
    """
    pool = {proxy.id: proxy for proxy in proxies}
    good = {proxy.id: proxy for proxy in pool.values() if proxy.ok and proxy.id != leaving}
    free = {proxy.id: proxy for proxy in good.values() if proxy.room}
    if override is not None:
        return free.get(override) or NoPlace(_why_not(override, pool, good))
    if sticky in free:
        return free[sticky]
    if free:
        return min(free.values(), key=lambda proxy: (len(proxy.sessions), natural(proxy.id)))
    if good:
        return NoPlace(Reason.POOL_FULL)
    return NoPlace(Reason.ALL_BAD if pool else Reason.EMPTY_POOL)


def _why_not(override: str, pool: dict[str, Proxy], good: dict[str, Proxy]) -> Reason:
    if override not in pool:
        return Reason.OVERRIDE_UNKNOWN
    return Reason.OVERRIDE_FULL if override in good else Reason.OVERRIDE_BAD
