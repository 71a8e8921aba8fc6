"""What counts as well: each rule at its edges, and a word with its advice in every language for each of its ends."""

import pytest

from switchboard.dashboard.catalogue import NAMES, Catalogue
from switchboard.dashboard.formats import Formats
from switchboard.dashboard.pages.health import row_of
from switchboard.domain import condition
from switchboard.domain.condition import Finding, Mark
from tests.support.board import UTC

GB = 1_000_000_000
MB = 1_000_000
OK, WARN, BAD = Mark.OK, Mark.WARN, Mark.BAD

CASES = [
    (condition.store_answers(0), "answers", OK),
    (condition.store_answers(100), "answers", OK),
    (condition.store_answers(101), "slow", WARN),
    (condition.store_answers(1_001), "slow", BAD),
    (condition.store_answers(None), "away", BAD),
    (condition.store_memory(5 * GB, 0, evicts=True), "unlimited", OK),
    (condition.store_memory(75 * MB, 100 * MB, evicts=False), "fits", OK),
    (condition.store_memory(76 * MB, 100 * MB, evicts=False), "full", WARN),
    (condition.store_memory(91 * MB, 100 * MB, evicts=False), "full", BAD),
    (condition.store_memory(1, 100 * MB, evicts=True), "evicts", BAD),
    (condition.store_writes(True, True), "good", OK),
    (condition.store_writes(True, False), "failed", BAD),
    (condition.store_writes(False, True), "off", WARN),
    (condition.store_rewrite(True, MB), "good", OK),
    (condition.store_rewrite(False, MB), "failed", WARN),
    (condition.store_clients(79, 100), "room", OK),
    (condition.store_clients(80, 100), "crowded", WARN),
    (condition.store_clients(80, 0), "room", OK),
    (condition.disk(10 * GB, 100 * GB), "room", OK),
    (condition.disk(10 * GB - 1, 100 * GB), "low", WARN),
    (condition.disk(GB - 1, 5 * GB), "low", WARN),
    (condition.disk(2 * GB - 1, 100 * GB), "full", BAD),
    (condition.disk(200 * MB - 1, GB), "full", BAD),
    (condition.clocks(-2_000), "agrees", OK),
    (condition.clocks(-2_001), "apart", WARN),
    (condition.clocks(30_001), "apart", BAD),
    (condition.leads(True), "here", OK),
    (condition.leads(False), "elsewhere", WARN),
    (condition.dispatched(0), "on_time", OK),
    (condition.dispatched(15_001), "late", WARN),
    (condition.dispatched(60_001), "late", BAD),
    (condition.sampled(-20_000, 10**9), "fresh", OK),
    (condition.sampled(150_000, 10**9), "fresh", OK),
    (condition.sampled(150_001, 10**9), "old", WARN),
    (condition.sampled(600_001, 10**9), "old", BAD),
    (condition.sampled(None, 10**9), "none", BAD),
    (condition.sampled(None, 149_999), "begins", OK),
    (condition.sampled(600_001, 149_999), "begins", OK),
    (condition.workers(3, 300 * MB), "run", OK),
    (condition.workers(0, 0), "none", OK),
    (condition.workers(None, 0), "unknown", BAD),
    (condition.sessions(0, 0, 0), "none", OK),
    (condition.sessions(3, 4, 0), "well", OK),
    (condition.sessions(3, 4, 1), "attention", WARN),
    (condition.sessions(0, 4, 1), "none_connected", BAD),
    (condition.proxies(0, 0, 0, 2, direct=False), "none", WARN),
    (condition.proxies(0, 0, 0, 2, direct=True), "direct", WARN),
    (condition.proxies(2, 0, 2, 2, direct=False), "work", OK),
    (condition.proxies(2, 0, 1, 2, direct=False), "few", WARN),
    (condition.proxies(2, 1, 4, 2, direct=False), "some_bad", WARN),
    (condition.proxies(2, 2, 0, 2, direct=False), "all_bad", BAD),
    (condition.senders(0, 0), "none", OK),
    (condition.senders(5, 1), "moving", OK),
    (condition.senders(5, 0), "stuck", WARN),
]


@pytest.mark.parametrize(("finding", "word", "mark"), CASES, ids=lambda value: str(getattr(value, "about", value)))
def test_each_rule_at_its_edges(finding: Finding, word: str, mark: Mark) -> None:
    assert (finding.word, finding.mark) == (word, mark)


@pytest.mark.parametrize("language", NAMES)
def test_every_end_is_said_and_what_is_not_well_comes_with_advice(language: str) -> None:
    texts = Catalogue()[language]
    for finding, _, _ in CASES:
        row = row_of(texts, Formats(language, UTC), finding)
        assert row.name
        assert row.figure
        assert bool(row.advice) == (finding.mark is not OK)
        assert "{" not in row.figure + row.advice


def test_the_whole_is_as_bad_as_its_worst_part() -> None:
    well, soon, now = condition.leads(True), condition.leads(False), condition.workers(None, 0)
    assert condition.worst([well]) is OK
    assert condition.worst([well, soon]) is WARN
    assert condition.worst([soon, now, well]) is BAD
    assert condition.worst([]) is OK
