"""Every key of the store: its name, type, life and owner. Nothing else may make up a key.

The Lua scripts get their key functions from this catalogue too (`lua_prelude`), so the two can't differ.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    pattern: str  # `{}` stands for the one thing the key belongs to
    type: str
    life: str
    owner: str
    holds: str


CATALOGUE = (
    Key("message", "message:{}", "hash", "until ended, then MESSAGE_RETENTION_DAYS", "all moves",
        "one message: text, recipient, status, place, attempts, times"),
    Key("messages", "messages", "zset", "for ever; an entry until its message is forgotten", "enqueue, find, tidy",
        "message id by the moment it was accepted, in fractions of a millisecond where several were at once"),
    Key("queue", "queue:session:{}", "zset", "while messages wait", "enqueue, release, route, dispatch",
        "message ids of one account (by phone), in the order they leave"),
    Key("scheduled", "queue:scheduled", "zset", "while messages wait", "enqueue, fail, dispatch, release",
        "message id by the moment it is due: scheduled, waiting for a retry, or for its recipient's hours"),
    Key("overflow", "queue:overflow:{}", "zset", "while messages wait", "release, route, dispatch",
        "message ids of one account that are due but found its queue full"),
    Key("jobs", "gateway:jobs", "zset", "while messages wait", "enqueue, release, route",
        "message ids that wait for a sender to be chosen"),
    Key("jobs_seq", "gateway:jobs:seq", "string", "for ever", "enqueue, release", "counter of jobs"),
    Key("outbox", "session:outbox:{}", "list", "while a message is handed over", "dispatch, claim",
        "the message handed over to one session and not claimed yet"),
    Key("dead", "dead-letters", "zset", "until a person decides", "fail, redrive, discard, confirm",
        "message id by the moment it was given up: dead and unconfirmed ones"),
    Key("account", "account:{}", "hash", "for ever", "connect, dispatch, claim, fail, hold",
        "one account by phone: age, zone, overrides, day's count, delay, the message in flight, holds"),
    Key("accounts", "accounts", "set", "for ever", "connect", "phones of all accounts"),
    Key("recent", "account:recent:{}", "list", "for ever", "dispatch",
        "moments of an account's hand-overs within the minute before its last one, newest first"),
    Key("account_sessions", "account:sessions:{}", "set", "for ever", "connect",
        "session ids ever linked to one account"),
    Key("connected", "account:connected:{}", "set", "while connected", "connect, disconnect",
        "session ids of one account that can send now"),
    Key("due", "dispatch:due", "zset", "for ever", "all moves",
        "account by the next moment a dispatcher should look at it"),
    Key("spare", "dispatch:spare", "zset", "while connected", "connect, disconnect, dispatch, route",
        "connected account by about how much it can still take on today; only a hint for choosing"),
    Key("session", "session:{}", "hash", "until deleted", "all session moves",
        "one session: state, phone, proxy, what is wanted of its worker, which was started, times, codes"),
    Key("sessions", "sessions", "set", "for ever", "provision, forget", "all session ids"),
    Key("sessions_seq", "sessions:seq", "string", "for ever", "provision", "counter of worker_<n>"),
    Key("temp", "session:temp:{}", "string", "while it waits for its scan", "provision, assign, connect, transition",
        "the proxy that a session that is not linked holds a place on"),
    Key("gone", "session:gone:{}", "string", "1 minute", "forget",
        "whether WhatsApp was told that a deleted session is no device of its phone any more"),
    Key("session_events", "session:events:{}", "stream", "the newest 200 or so", "all session moves, keep",
        "what happened to one session, and what its worker said"),
    Key("session_states", "session:states:{}", "list", "until deleted; the newest 1,000", "all session moves",
        "the moments one session went into another state, and which, newest first"),
    Key("seen", "session:seen:{}", "zset", "until deleted; 256 at most", "keep",
        "marks of worker events that came before their turn, or without a number"),
    Key("requests", "session:requests:{}", "zset", "10 minutes", "admit_worker",
        "ids of a worker's signed requests, by when they came: none counts twice"),
    Key("phone_sessions", "phone:sessions:{}", "set", "while there are any", "provision, connect, transition, forget",
        "session ids that are, or are about to be, linked devices of one phone"),
    Key("phone_proxy", "phone:proxy:{}", "string", "for ever", "connect, assign",
        "the proxy a phone always gets again"),
    Key("proxy", "proxy:{}", "hash", "until removed", "add_proxy, mark_proxy", "one proxy: url, status, since when"),
    Key("proxies", "proxies", "set", "for ever", "add_proxy, remove_proxy", "all proxy ids"),
    Key("proxies_seq", "proxies:seq", "string", "for ever", "add_proxy", "counter of proxy_<n>"),
    Key("proxy_sessions", "proxy:sessions:{}", "set", "while there are any", "provision, assign, connect, forget",
        "session ids that hold a place on one proxy: its load, which can't drift"),
    Key("low", "inventory:low", "string", "while few places are left", "proxies", "that this was told already"),
    Key("leader", "orchestrator:leader", "string", "for ever", "leader", "the installation that runs this fleet"),
    Key("recipient", "recipient:{}", "hash", "180 days after the last message", "dispatch, route",
        "one recipient: the account that writes to them, how many they got today"),
    Key("suppressions", "suppressions", "set", "for ever", "suppressions", "phones that must not be written to"),
    Key("batch", "batch:{}", "hash", "until its last row ended, then MESSAGE_RETENTION_DAYS", "enqueue, all ends",
        "one batch: totals and how many ended in which way"),
    Key("batch_rows", "batch:rows:{}", "list", "as its batch", "enqueue", "message ids of a batch, in order"),
    Key("batches", "batches", "zset", "for ever; an entry until its batch is forgotten", "enqueue, find, tidy",
        "batch id by the moment it was accepted"),
    Key("idempotency", "idempotency:{}", "hash", "24 h", "enqueue",
        "what was answered to one Idempotency-Key of one API key, and the digest of its body"),
    Key("rate", "rate:{}", "string", "2 minutes", "enqueue, admit", "calls of one API key in one minute"),
    Key("api_key", "apikey:{}", "hash", "until revoked", "api_keys", "one API key by the digest of its secret"),
    Key("api_keys", "apikeys", "set", "for ever", "api_keys", "digests of all API keys"),
    Key("sign_in", "signin:{}", "string", "30 days at most", "sign_ins",
        "one sign-in at the dashboard by the digest of its cookie's token: whose, by what, until when"),
    Key("sign_in_attempts", "signin:attempts:{}", "string", "2 minutes", "sign_ins",
        "wrong secrets of one address, or of all of them, in one minute"),
    Key("sign_in_spent", "signin:spent:{}", "string", "as long as the token is good", "sign_ins",
        "that a one-time link, or the form of a new API key, was used, by the digest of its token"),
    Key("password", "dashboard:password", "hash", "for ever", "sign_ins",
        "the hash of the dashboard's password, and how often all sign-ins were ended"),
    Key("stats", "stats:{}", "hash", "90 days", "confirm, fail",
        "a day's figures of session:<id>:<day>, account:<phone>:<day> or fleet:<day>, also by hour"),
    Key("samples", "samples", "zset", "7 days", "samples",
        "the fleet's figures by the minute they were taken in"),
    Key("events", "events", "stream", "the newest 10,000 or so", "all moves", "what happened, for whoever listens"),
    Key("wake", "wake", "channel", "-", "all moves", "`dispatch`, `jobs`, `fleet` or `outbox:<sessionId>`: look now"),
)  # fmt: skip

_PATTERNS = {key.name: key.pattern for key in CATALOGUE}


class Keys:
    """Key names under one prefix, so that several Switchboards, or tests, can share a store."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def __call__(self, name: str, of: str = "") -> str:
        return self.prefix + _PATTERNS[name].replace("{}", of)


def lua_prelude() -> str:
    """`K_message(id)`, `K_due`, … for the scripts. The prefix is the one and only KEYS argument."""
    lines = ["local P = KEYS[1]"]
    for key in CATALOGUE:
        if "{}" in key.pattern:
            stem = key.pattern.removesuffix("{}")
            lines.append(f"local function K_{key.name}(of) return P .. '{stem}' .. of end")
        else:
            lines.append(f"local K_{key.name} = P .. '{key.pattern}'")
    return "\n".join(lines) + "\n"
