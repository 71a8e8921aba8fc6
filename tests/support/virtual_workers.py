"""Virtual workers with faults: they claim, send, fail, fall silent and answer late, and the ledger follows."""

from random import Random

from switchboard.domain.messages import Status
from switchboard.domain.pacing import HandOver
from switchboard.domain.retry import FailureClass, RetryRules, decide
from switchboard.store import Store
from switchboard.store.outbox import Claimed
from tests.support.ledger import ARRIVED, Ledger
from tests.support.referee import HOUR, MINUTE, SECOND, local

LEASE = MINUTE
NEVER = 10**15
HUNG = 0.004  # of all hand-overs are never claimed
DOOMED = 0.003  # of all messages fail whatever is tried
FATES = {  # of what is claimed
    "arrives": 95.0,
    "silent": 0.8,
    "retryable": 1.5,
    "not_on_whatsapp": 0.6,
    "refused": 0.3,
    "unconfirmed": 0.5,
    "rate_limited": 0.08,
    "restricted": 0.04,
}


class Workers:
    def __init__(self, store: Store, ledger: Ledger, random: Random) -> None:
        self.store = store
        self.ledger = ledger
        self.random = random
        self.retry = RetryRules()
        self._leases: dict[str, tuple[str, int]] = {}  # account -> message that nobody will answer for

    def handed(self, hand_over: HandOver) -> None:
        message_id, session = hand_over.message_id, hand_over.session
        phone = session.partition("-")[0]
        self.ledger.referee.handed(message_id, phone, session, self.ledger.now, hand_over.not_before)
        books, parcel = self.ledger.referee.accounts[phone], self.ledger.parcels[message_id]
        assert parcel.status == "waiting", f"{message_id} was handed over while it is {parcel}"
        here = local(self.ledger.now, books.zone)
        parcel.status, parcel.session, parcel.claimed = "flying", session, False
        parcel.day, parcel.hour = here.date().isoformat(), here.hour
        to = self.ledger.referee.letters[message_id].to
        if to in self.ledger.writers:
            assert self.ledger.writers.setdefault(to, phone) in (phone, ""), f"{to} is written to by two accounts"
            self.ledger.writers[to] = phone
        if self.random.random() < HUNG:
            self._leases[phone] = (message_id, self.ledger.now + LEASE)
            self.ledger.told["never claimed"] += 1
        else:
            delay = self.random.choice((0, 0, 0, 0, 900))
            self.ledger.at(self.ledger.now + delay, phone, lambda: self._claim(phone, session))

    async def _claim(self, phone: str, session: str) -> None:
        claim = await self.store.outbox.claim(session, "one", self.ledger.now)
        letter = self.ledger.referee.accounts[phone].in_flight
        mine = letter is not None and self.ledger.parcels[letter.id].session == session
        if letter is None or not mine:
            assert claim is None, f"{session} got {claim}, and has nothing in flight"
            return
        parcel = self.ledger.parcels[letter.id]
        assert claim is not None, f"{session} got nothing, and has {letter}"
        assert (claim.message_id, claim.to) == (letter.id, letter.to)
        if parcel.claimed:
            return  # it asked twice
        parcel.claimed = True
        parcel.attempts += 1
        self.ledger.referee.claimed(letter.id, self.ledger.now)
        self.forget_lease(letter.id)
        assert claim.attempt == parcel.attempts
        self._work(phone, session, claim)

    def _work(self, phone: str, session: str, claim: Claimed) -> None:
        luck = self.ledger.luck("work", claim.message_id)
        done = self.ledger.now + luck.randint(1 * SECOND, 3 * SECOND)
        message_id = claim.message_id
        fate = luck.choices(list(FATES), list(FATES.values()))[0]
        if Random(f"{self.ledger.seed}:{message_id}").random() < DOOMED:
            fate = luck.choice(("silent", "unconfirmed", "retryable"))
        if fate == "arrives":
            self.ledger.at(done, phone, lambda: self._confirm(phone, session, message_id, Status.SENT))
        elif fate == "silent":
            self._leases[phone] = (message_id, claim.lease_until)
            self.ledger.told["silent"] += 1
        else:
            self.ledger.at(done, phone, lambda: self._fail(phone, claim, FailureClass(fate)))
        if fate in {"silent", "unconfirmed"} and luck.random() < 0.5:
            later = done + luck.choice((30 * SECOND, 90 * SECOND, 10 * MINUTE, 5 * HOUR))
            status = luck.choice((Status.SENT, Status.DELIVERED))
            self.ledger.at(later, phone, lambda: self._confirm(phone, session, message_id, status))

    async def _confirm(self, phone: str, session: str, message_id: str, status: Status) -> None:
        settled = await self.store.outbox.confirm(session, message_id, status, self.ledger.now, self.ledger.now)
        parcel = self.ledger.parcels[message_id]
        rank = ARRIVED.index(parcel.status) if parcel.status in ARRIVED else -1
        forward = ARRIVED.index(status) > rank
        assert settled.changed == forward, f"{message_id} is {parcel}, {status} says {settled}"
        if not forward:
            return
        if rank < 0:
            self._arrived(phone, message_id)
        for step in ARRIVED[rank + 1 : ARRIVED.index(status) + 1]:
            self.ledger.figure(phone, parcel, step, 1)
        parcel.status = status
        luck = self.ledger.luck("receipt", message_id)
        if status is Status.SENT and luck.random() < 0.2:
            receipt = luck.choice((Status.DELIVERED, Status.READ))
            later = self.ledger.now + luck.choice((SECOND, HOUR, 6 * HOUR))
            self.ledger.at(
                later - later % HOUR + HOUR, phone, lambda: self._confirm(phone, session, message_id, receipt)
            )

    def _arrived(self, phone: str, message_id: str) -> None:
        parcel = self.ledger.parcels[message_id]
        if parcel.status in {"dead", "unconfirmed"}:
            self.ledger.figure(phone, parcel, "failed", -1)
            self.ledger.told["late, from the dead"] += 1
        elif parcel.status == "flying":
            self.forget_lease(message_id)
            if parcel.claimed:
                self.ledger.referee.freed(message_id, self.ledger.now)
            else:
                self.ledger.referee.given_back(message_id, self.ledger.now)
        parcel.claimed = False

    async def _fail(self, phone: str, claim: Claimed, kind: FailureClass) -> None:
        parcel = self.ledger.parcels[claim.message_id]
        current = parcel.status == "flying" and parcel.claimed and parcel.attempts == claim.attempt
        luck = self.ledger.luck("restriction", claim.message_id)
        until = self.ledger.now + luck.randint(1, 40) * HOUR if luck.random() < 0.7 else None
        outcome = decide(self.retry, kind, parcel.failures, parcel.unknown, self.ledger.now, until)
        settled = await self.store.outbox.fail(
            phone, claim.message_id, claim.attempt, parcel.failures, kind, kind.value, outcome, self.ledger.now
        )
        assert settled.changed == current, f"{claim} is {parcel}, {kind} says {settled}"
        if current:
            self._failed(phone, claim.message_id, kind)
        self._hold(phone, kind, until)

    def _hold(self, phone: str, kind: FailureClass, until: int | None) -> None:
        books = self.ledger.referee.accounts[phone]
        if kind is FailureClass.RATE_LIMITED:
            books.paused_until = max(books.paused_until, self.ledger.now + 30 * MINUTE)
        elif kind is FailureClass.RESTRICTED:
            books.restricted_until = max(books.restricted_until, until or NEVER)
            if until is None:
                self.ledger.at(self.ledger.now + 20 * HOUR, phone, lambda: self.resume(phone))

    def _failed(self, phone: str, message_id: str, kind: FailureClass) -> None:
        """Three attempts, 30 s and 2 minutes apart; some failures are final, some are the account's."""
        parcel = self.ledger.parcels[message_id]
        self.ledger.told[kind.value] += 1
        parcel.claimed, parcel.status = False, "waiting"
        if kind in {FailureClass.RATE_LIMITED, FailureClass.RESTRICTED}:
            self.ledger.referee.freed(message_id, self.ledger.now)
            return
        parcel.failures += 1
        parcel.unknown = parcel.unknown or kind is FailureClass.UNCONFIRMED
        if parcel.failures < 3 and kind not in {FailureClass.NOT_ON_WHATSAPP, FailureClass.REFUSED}:
            gap = (30 * SECOND, 120 * SECOND)[parcel.failures - 1]
            self.ledger.referee.freed(message_id, self.ledger.now, retry_at=self.ledger.now + gap)
            return
        final = kind in {FailureClass.NOT_ON_WHATSAPP, FailureClass.REFUSED}
        parcel.status = "unconfirmed" if parcel.unknown and not final else "dead"
        self.ledger.referee.freed(message_id, self.ledger.now)
        self.ledger.figure(phone, parcel, "failed", 1)
        luck = self.ledger.luck("dead", message_id)
        later, chance = self.ledger.now + luck.randint(1, 10) * HOUR, luck.random()
        if chance < 0.6:
            self.ledger.at(later, phone, lambda: self.decide(message_id, redrive=chance < 0.3))
        if parcel.status == "unconfirmed" and luck.random() < 0.5:
            session = parcel.session
            late = later + luck.choice((-HOUR // 2, HOUR // 2))  # before a person decides, or after
            self.ledger.at(late, phone, lambda: self._confirm(phone, session, message_id, Status.SENT))

    def leases_run_out(self) -> None:
        """The next round finds them: claimed ones failed, the others go back."""
        for phone, (message_id, until) in list(self._leases.items()):
            if until <= self.ledger.now:
                del self._leases[phone]
                if self.ledger.parcels[message_id].claimed:
                    self._failed(phone, message_id, FailureClass.UNCONFIRMED)
                else:
                    self.given_back(message_id)

    def given_back(self, message_id: str) -> None:
        self.forget_lease(message_id)
        self.ledger.referee.given_back(message_id, self.ledger.now)
        self.ledger.parcels[message_id].status = "waiting"
        self.ledger.told["given back"] += 1

    def forget_lease(self, message_id: str) -> None:
        for phone, (held, _) in list(self._leases.items()):
            if held == message_id:
                del self._leases[phone]

    # What a person does about it.

    async def resume(self, phone: str) -> None:
        await self.store.accounts.resume(phone, self.ledger.now)
        books = self.ledger.referee.accounts[phone]
        books.paused_until = books.restricted_until = 0
        books.free_since = self.ledger.now

    async def decide(self, message_id: str, redrive: bool) -> None:
        parcel, letter = self.ledger.parcels[message_id], self.ledger.referee.letters[message_id]
        if redrive:
            outcome, _ = await self.store.messages.redrive(message_id, self.ledger.now)
        else:
            outcome, _ = await self.store.messages.discard(message_id, self.ledger.now)
        if parcel.status not in {"dead", "unconfirmed"}:
            assert outcome == "NOT_DEAD"
        elif redrive and letter.to in self.ledger.suppressed:
            assert outcome == "OPTED_OUT"
        elif redrive:
            assert outcome == "OK", outcome
            parcel.status, parcel.failures = "waiting", 0
            letter.ready_at = self.ledger.now
            self.ledger.told["redriven"] += 1
