"""What an operator should know, and do, about a reason: why a session is down or held, what is wrong with a proxy."""

import re
from collections.abc import Mapping

REASONS: Mapping[str, str] = {
    # A person is needed, or has decided.
    "scan_timeout": "it was not scanned in time; scan it anew",
    "logged_out": "it was logged out on the phone; scan anew",
    "by_request": "on request; start it to go on",
    "deleting": "it is being deleted",
    "logout_unconfirmed": "WhatsApp could not be told; remove the device on the phone",
    "other_phone": "its worker turned up under another number; look into it, then log it out and scan anew",
    "replaced": "another program uses this link; find it, then start this one",
    "passkey_required": "the phone asks for a passkey, which no worker can give; link another number",
    "too_many_sessions": "the phone has all its linked devices already; delete one",
    "worker_gave_up": "its worker gave up; see its log, then start it",
    "auth_failure:client_outdated": "this version of Switchboard is too old for WhatsApp: update it, then start it",
    # It comes back by itself.
    "waiting_for_proxy": "no proxy has room or works; it waits, and never goes without one "
    "(see: switchboard proxies list; add one: switchboard proxies add)",
    "proxy_error": "its proxy does not work, so it gets another one (see: switchboard proxies list)",
    "proxy_removed": "its proxy was removed, so it gets another one",
    "failover": "it moved to another proxy",
    "moving_to_own_proxy": "it moves to the proxy this number always uses",
    "restart": "restarting, as asked",
    "restart_required": "WhatsApp asked it to connect again, which it does by itself",
    "qr_expired": "nobody scanned its codes; it asks for new ones by itself",
    "switchboard_stopped": "Switchboard was stopped; it comes back by itself",
    "stopped": "its worker was stopped and is started again",
    "no_ping": "its worker went silent and is being restarted",
    "worker_gone": "its worker is gone and is being started again",
    "not_started": "its worker could not be started; see the log of Switchboard",
}

_BROKEN = re.compile(r"(failure|http|stream_error|connection_closed)_\w+|connection_closed|connection_lost")
"""The worker's words for a connection that ended and is tried again."""

_EXITS = {
    "74": "it can't use its folder: free space, or make the folder writable",
    "78": "it can't use its settings",
}

_HOLDS = {
    "by_request": "it is paused on request",
    "rate_limited": 'WhatsApp said "too fast"',
    "restricted": "WhatsApp restricts this number",
}

FAULTS: Mapping[str, str] = {
    # What a try of ours finds, and what workers report; some by the same word.
    "unreachable": "it can't be reached: check its address",
    "timeout": "it did not answer in time",
    "not_socks": "what listens there is not a SOCKS5 proxy: check its port",
    "connect_refused": "it answers, but can't connect to WhatsApp",
    "reset": "it closed the connection",
    "no_auth_method": "it offers no way to sign in that we know: a user name and password, or none",
    "auth_rejected": "it does not accept the user name and password",
    "auth_failed": "it does not accept the user name and password",
    "auth_refused": "it offers no way to sign in that we know: a user name and password, or none",
    "refused": "nothing listens at its address: check host and port",
    "unknown_host": "its host name is not known: check the spelling",
    "closed": "it closed the connection",
    "failed": "it failed; see the log of the worker",
    "tls_not_trusted": "the certificate shown in WhatsApp's name is not trusted: the proxy may read along "
    "(with the simulator: start Switchboard with NODE_EXTRA_CA_CERTS)",
}


def reason(word: str | None) -> str:
    """Why a session is as it is. What nobody here knows, because some other worker said it, is shown as it is."""
    if not word:
        return ""
    stem, _, detail = word.partition(":")
    if word in REASONS:
        return REASONS[word]
    if stem == "crash_loop":
        return f"its worker ended again and again ({reason(detail)}); see its log, then start it"
    if stem == "not_started":
        return f"its worker could not be started: {detail}"
    if stem == "worker_exited":
        why = f" ({_EXITS[detail]})" if detail in _EXITS else ""
        return f"its worker ended by itself{f', code {detail}' if detail else ''}{why}"
    if stem == "auth_failure":
        return f"WhatsApp does not let this number in ({detail}): it may be blocked; look at the phone, then start it"
    if _BROKEN.fullmatch(word):
        return f"the connection to WhatsApp broke ({word}); it connects again by itself"
    return word


def hold(word: str | None, when: str, session: str) -> str:
    """Why a session's number sends nothing; `when` it goes on by itself, empty if never."""
    if not word:
        return ""
    said, resume = _HOLDS.get(word, word), f"switchboard sessions resume {session}"
    if when:
        return f"{said}; it goes on by itself {when}" + ("" if word == "restricted" else f", or: {resume}")
    return f"{said}; " + (f"look at the phone, then: {resume}" if word == "restricted" else f"to go on: {resume}")


def fault(word: str | None) -> str:
    """What is wrong with a proxy."""
    return FAULTS.get(word or "", word or "")
