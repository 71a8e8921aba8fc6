"""The store as one object: every noun under its name, all on one client and one key prefix."""

from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from switchboard.store.accounts import Accounts
from switchboard.store.api_keys import ApiKeys
from switchboard.store.batches import Batches
from switchboard.store.client import Redis, connect, store_errors
from switchboard.store.feed import Feed
from switchboard.store.glance import Glances
from switchboard.store.health import Health
from switchboard.store.intake import Intake, IntakeRules
from switchboard.store.keys import Keys
from switchboard.store.leader import Leader
from switchboard.store.messages import MessageRules, Messages
from switchboard.store.outbox import Outbox, OutboxRules
from switchboard.store.pace import Pace, PaceRules
from switchboard.store.proxies import Proxies
from switchboard.store.samples import Samples
from switchboard.store.scripts import Scripts
from switchboard.store.sessions import SessionRules, Sessions
from switchboard.store.sign_ins import SignIns
from switchboard.store.stats import Stats
from switchboard.store.suppressions import Suppressions
from switchboard.store.wakeups import Wakeups
from switchboard.store.worker_calls import WorkerCalls


@dataclass(frozen=True, slots=True)
class StoreRules:
    """The figures the moves need, and the zone of accounts that name none."""

    default_zone: ZoneInfo
    intake: IntakeRules = field(default_factory=IntakeRules)
    pace: PaceRules = field(default_factory=PaceRules)
    outbox: OutboxRules = field(default_factory=OutboxRules)
    messages: MessageRules = field(default_factory=MessageRules)
    sessions: SessionRules = field(default_factory=SessionRules)


class Store:
    def __init__(self, client: Redis, prefix: str, rules: StoreRules) -> None:
        self._client = client
        keys = Keys(prefix)
        scripts = Scripts(client, prefix)
        zone = rules.default_zone
        self.intake = Intake(scripts, rules.intake, zone)
        self.pace = Pace(scripts, rules.pace, zone)
        self.outbox = Outbox(scripts, rules.outbox)
        self.messages = Messages(client, keys, scripts, rules.messages, zone)
        self.accounts = Accounts(client, keys, scripts, zone)
        self.sessions = Sessions(client, keys, scripts, rules.sessions)
        self.proxies = Proxies(client, keys, scripts, rules.sessions.per_proxy)
        self.worker_calls = WorkerCalls(scripts)
        self.feed = Feed(client, keys)
        self.leader = Leader(client, keys)
        self.batches = Batches(client, keys, scripts, rules.messages.walk)
        self.suppressions = Suppressions(client, keys)
        self.stats = Stats(client, keys)
        self.samples = Samples(client, keys)
        self.glances = Glances(client, keys, zone)
        self.api_keys = ApiKeys(client, keys)
        self.sign_ins = SignIns(client, keys)
        self.wakeups = Wakeups(client, keys)
        self.health = Health(client, keys)

    async def ping(self) -> None:
        async with store_errors():
            await self._client.ping()

    async def close(self) -> None:
        await self._client.aclose()


def open_store(url: str, prefix: str, rules: StoreRules) -> Store:
    return Store(connect(url), prefix, rules)
