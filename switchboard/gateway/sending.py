"""From a valid request to a queued message and an honest answer. No HTTP here."""

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NoReturn

from pydantic import ValidationError

from switchboard.domain import errors, ids, phones
from switchboard.domain.accounts import Account, Profile
from switchboard.domain.clock import Clock
from switchboard.domain.hours import DAY_MS
from switchboard.domain.ids import is_session_id
from switchboard.domain.pacing import Policy
from switchboard.domain.waiting import expected
from switchboard.gateway.models import BatchRequest, BatchRow, SendRequest
from switchboard.store import Store
from switchboard.store.coalesce import Coalescer
from switchboard.store.intake import Accepted, Entry, Refusal, Refused, Result, Row, Stale
from switchboard.web.auth import Caller, seconds_left
from switchboard.web.times import iso, ms

_PROFILES_KEPT = 20_000
# A good request is counted against its key's rate by the script; one that never gets there is counted here.
_REFUSED_HERE = (errors.InvalidRequest, errors.SessionNotFound)
_FARTHEST_MS = 3660 * DAY_MS  # some ten years, as far as an estimate goes


@dataclass(frozen=True, slots=True)
class SendRules:
    max_text: int = 4095
    max_rows: int = 10_000
    room: int = 1000
    default_country: str | None = None


class Sending:
    """Keeps the profiles of accounts it has seen: the script says when one is out of date."""

    def __init__(
        self,
        store: Store,
        policy: Policy,
        rules: SendRules,
        clock: Clock,
        admit: Callable[[Caller], Awaitable[None]],
    ) -> None:
        self._store = store
        self._policy = policy
        self._rules = rules
        self._clock = clock
        self._admit = admit
        self._profiles: OrderedDict[tuple[str | None, str | None], Profile] = OrderedDict()
        self._coalescer = Coalescer[Entry, Result](lambda entries: store.intake.enqueue(entries, clock()))

    async def send(self, caller: Caller, request: SendRequest, idempotency_key: str | None) -> dict[str, object]:
        try:
            sender = await self._sender(caller, request)
            to = self._phone(request.to, "to")
            self._check_text(request.message)
            due = self._due(request.scheduledFor)
            row = Row(ids.new_message_id(), to, request.message, request.priority, due, request.reference)
            entry = _entry(caller, request, sender, [row], idempotency_key)
        except _REFUSED_HERE:
            await self._admit(caller)
            raise
        accepted = await self._accept(entry, together=True)
        return {
            "queued": True,
            "messageId": accepted.message_id,
            "position": accepted.position,
            "estimatedDelivery": self._estimate(accepted, to, due),
        }

    async def send_batch(self, caller: Caller, request: BatchRequest, idempotency_key: str | None) -> dict[str, object]:
        try:
            sender = await self._sender(caller, request)
            rows = self._rows(request)
            entry = _entry(caller, request, sender, rows, idempotency_key)
        except _REFUSED_HERE:
            await self._admit(caller)
            raise
        spread_ms = round(request.spreadMinutes * 60_000)
        entry = replace(entry, batch=(ids.new_batch_id(), spread_ms))
        accepted = await self._accept(entry, together=False)
        return {
            "queued": len(rows),
            "batchId": accepted.message_id,
            "estimatedCompletion": self._completion(accepted, rows, spread_ms),
        }

    def _rows(self, request: BatchRequest) -> list[Row]:
        """All rows or none: every bad one is named."""
        if len(request.messages) > self._rules.max_rows:
            raise errors.InvalidRequest(f"messages: at most {self._rules.max_rows} rows at once", "messages")
        now, count = self._clock(), len(request.messages)
        # At least a sliver between two rows: those due at the same moment keep their order.
        step = max(request.spreadMinutes * 60_000 / count, 1 / 1024)
        rows: list[Row] = []
        bad: list[dict[str, object]] = []
        for index, raw in enumerate(request.messages):
            try:
                row = BatchRow.model_validate(raw)
                to = self._phone(row.to, "to")
                self._check_text(row.text, "text")
            except ValidationError as error:
                first = error.errors(include_input=False)[0]
                field = str(first["loc"][0]) if first["loc"] else "row"
                bad.append({"index": index, "field": field, "message": first["msg"]})
            except errors.InvalidRequest as error:
                bad.append({"index": index, "field": error.details["field"], "message": error.message})
            else:
                due = now + index * step
                rows.append(Row(ids.new_message_id(), to, row.text, request.priority, due, row.reference))
        if bad:
            _refuse_rows(bad)
        return rows

    async def _sender(self, caller: Caller, request: SendRequest | BatchRequest) -> tuple[str | None, str | None]:
        """The session and the phone to send from. Who may is asked before anything else is looked at.

        A key bound to sessions sends through one of them: the one it names, or one of the phone it names.
        """
        session = request.sessionId
        if session is not None:
            caller.require_session(session)
        phone = self._phone(request.phone, "phone") if request.phone else None
        if session is None and caller.key.sessions:
            of_phone = await self._store.accounts.sessions_of(phone) if phone else set[str]()
            session = min(of_phone & caller.key.sessions, default=None)
            caller.require_session(session)
        return session, phone

    async def _accept(self, entry: Entry, *, together: bool) -> Accepted:
        sender = (entry.session, entry.phone)
        for _ in range(5):
            guarded = self._guarded(entry, self._profiles.get(sender))
            if together:
                result = await self._coalescer.submit(guarded)
            else:
                (result,) = await self._store.intake.enqueue([guarded], self._clock())
            match result:
                case Accepted():
                    return result
                case Refused(Refusal.MISMATCH) if entry.phone is None:
                    self._profiles.pop(sender, None)  # its session belongs to another account by now
                    entry = replace(entry, rate=None)  # this call is counted already
                case Refused():
                    self._refuse(result, entry)
                case Stale():
                    self._remember(sender, result.profile)
        raise errors.StoreUnavailable  # its limits change faster than we can read them

    def _guarded(self, entry: Entry, profile: Profile | None) -> Entry:
        if profile is None:
            return entry
        now = self._clock()
        return replace(
            entry,
            phone=profile.phone,  # a revision means nothing for another account than this
            revision=profile.revision,
            daily=self._policy.limits(profile, now).daily,
            burst=self._policy.burst_threshold(profile, now),
        )

    def _remember(self, sender: tuple[str | None, str | None], profile: Profile) -> None:
        self._profiles[sender] = profile
        self._profiles.move_to_end(sender)
        if len(self._profiles) > _PROFILES_KEPT:
            self._profiles.popitem(last=False)

    def _refuse(self, refused: Refused, entry: Entry) -> NoReturn:
        sender = entry.session or entry.phone or ""
        match refused.reason:
            case Refusal.RATE_LIMITED:
                raise errors.RateLimited(seconds_left(self._clock()))
            case Refusal.CONFLICT:
                raise errors.IdempotencyConflict
            case Refusal.NOT_FOUND:
                raise errors.SessionNotFound(sender)
            case Refusal.NOT_LINKED:
                raise errors.SessionNotLinked(sender)
            case Refusal.MISMATCH:
                raise errors.InvalidRequest(f"phone: is not the phone of session '{sender}'", "phone")
            case Refusal.OPTED_OUT if entry.batch:
                _refuse_rows([_opted_out_row(index, entry.rows[index].to) for index in refused.rows])
            case Refusal.OPTED_OUT:
                raise errors.RecipientOptedOut(entry.rows[0].to)
            case Refusal.DAILY_LIMIT:
                profile = self._profiles[(entry.session, entry.phone)]
                limit = self._policy.limits(profile, self._clock()).daily
                raise errors.DailyLimitReached(limit, refused.sent, iso(refused.resets_at, profile.zone))
            case Refusal.QUEUE_FULL:
                raise errors.QueueFull(self._rules.room)

    def _estimate(self, accepted: Accepted, to: str, due: int) -> str | None:
        account = accepted.account
        if account is None:
            return None
        if accepted.position is None:
            # Without a moment of its own it was put off to the next day.
            verdict = expected(self._policy, account, 1, to, due or account.day_ends_at)
        else:
            verdict = expected(self._policy, account, accepted.position, to, accepted.at)
        return iso(verdict.at, account.profile.zone) if verdict.at is not None else None

    def _completion(self, accepted: Accepted, rows: Sequence[Row], spread_ms: int) -> str | None:
        account = accepted.account
        if account is None:
            return None
        verdict = expected(self._policy, account, account.waiting + len(rows), rows[-1].to, _start(account, accepted))
        if verdict.at is None:
            return None
        last_due = accepted.at + spread_ms * (len(rows) - 1) // len(rows)
        return iso(max(verdict.at, last_due), account.profile.zone)

    def _phone(self, text: str, field: str) -> str:
        try:
            return phones.normalise(text, self._rules.default_country)
        except phones.PhoneError as error:
            raise errors.InvalidRequest(f"{field}: {error}", field) from None

    def _due(self, moment: datetime | None) -> int:
        due = ms(moment) if moment else 0
        if due > self._clock() + _FARTHEST_MS:
            raise errors.InvalidRequest("scheduledFor: at most ten years ahead", "scheduledFor")
        return due

    def _check_text(self, text: str, field: str = "message") -> None:
        if len(text) > self._rules.max_text:
            raise errors.InvalidRequest(f"{field}: at most {self._rules.max_text} characters", field)
        if not text.strip():
            raise errors.InvalidRequest(f"{field}: is blank", field)


def _entry(
    caller: Caller,
    request: SendRequest | BatchRequest,
    sender: tuple[str | None, str | None],
    rows: Sequence[Row],
    idempotency_key: str | None,
) -> Entry:
    session, phone = sender
    idempotency = _idempotency(caller, request, idempotency_key)
    if session is not None and not is_session_id(session):
        raise errors.SessionNotFound(session)
    return Entry(
        rows=rows,
        session=session,
        phone=phone,
        deferrable=request.deferrable,
        rate=caller.rate,
        idempotency=idempotency,
    )


def _start(account: Account, accepted: Accepted) -> int:
    return max(accepted.at, account.not_before)


def _opted_out_row(index: int, to: str) -> dict[str, object]:
    error = errors.RecipientOptedOut(to)
    return {"index": index, "field": "to", "error": error.code, "message": error.message}


def _refuse_rows(bad: list[dict[str, object]]) -> NoReturn:
    raise errors.InvalidRequest(f"{len(bad)} of the rows can't be sent; nothing was queued.", "messages", rows=bad)


def _idempotency(caller: Caller, request: SendRequest | BatchRequest, key: str | None) -> tuple[str, str] | None:
    """Scoped to the API key; bodies are compared by what they mean, not by their spelling."""
    if key is None:
        return None
    if not 1 <= len(key) <= 255:
        raise errors.InvalidRequest("Idempotency-Key: 1 to 255 characters", "Idempotency-Key")
    scope = f"{caller.key.id}\n{key}"
    body = type(request).__name__ + request.model_dump_json()
    return hashlib.sha256(scope.encode()).hexdigest(), hashlib.sha256(body.encode()).hexdigest()
