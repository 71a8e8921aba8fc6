"""How fast an account may write grows with its age here; every figure of the table is pinned."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchboard.domain.hours import Hours
from switchboard.domain.trust import (
    CONSERVATIVE,
    PRESETS,
    STANDARD,
    Limits,
    Overrides,
    TrustLevel,
    TrustTable,
    bolder,
)

COLD, WARM, HOT = TrustLevel.COLD, TrustLevel.WARM, TrustLevel.HOT
DAY = 24 * 60 * 60 * 1000
BORN = 1_767_225_600_000
TABLE = TrustTable(STANDARD)


@pytest.mark.parametrize(
    ("level", "daily", "per_minute", "base_delay_ms", "jitter_ms", "hours"),
    [
        (COLD, 20, 5, 5_000, 3_000, "09:00-21:00"),
        (WARM, 100, 15, 3_000, 2_000, "08:00-22:00"),
        (HOT, 500, 30, 2_000, 2_000, "07:00-23:00"),
    ],
)
def test_the_standard_table(
    level: TrustLevel, daily: int, per_minute: int, base_delay_ms: int, jitter_ms: int, hours: str
) -> None:
    assert STANDARD[level] == Limits(daily, per_minute, base_delay_ms, jitter_ms, Hours.parse(hours))


@pytest.mark.parametrize(("level", "delays"), [(COLD, (5_000, 8_000)), (WARM, (3_000, 5_000)), (HOT, (2_000, 4_000))])
def test_a_standard_delay_is_the_base_and_up_to_the_jitter_more(level: TrustLevel, delays: tuple[int, int]) -> None:
    assert STANDARD[level].delay_range == delays


@pytest.mark.parametrize(
    ("level", "daily", "delays"),
    [(COLD, 10, (3_500, 6_500)), (WARM, 50, (2_100, 3_900)), (HOT, 200, (1_400, 2_600))],
)
def test_the_conservative_preset_sends_less_with_delays_of_the_base_give_or_take_30_percent(
    level: TrustLevel, daily: int, delays: tuple[int, int]
) -> None:
    assert CONSERVATIVE[level].daily == daily
    assert CONSERVATIVE[level].delay_range == delays


@pytest.mark.parametrize("level", TrustLevel)
def test_the_conservative_preset_keeps_the_rest_of_the_table(level: TrustLevel) -> None:
    for name in ("per_minute", "base_delay_ms", "hours"):
        assert getattr(CONSERVATIVE[level], name) == getattr(STANDARD[level], name)


def test_the_presets_have_names() -> None:
    assert PRESETS == {"standard": STANDARD, "conservative": CONSERVATIVE}


@pytest.mark.parametrize(
    ("age", "level"),
    [
        (0, COLD),
        (3 * DAY - 1, COLD),
        (3 * DAY, WARM),
        (14 * DAY - 1, WARM),
        (14 * DAY, HOT),
        (3650 * DAY, HOT),
    ],
)
def test_the_level_follows_the_age_since_the_first_connection(age: int, level: TrustLevel) -> None:
    assert TABLE.level(BORN, BORN + age) is level
    assert TABLE.limits(BORN, BORN + age, Overrides()) == STANDARD[level]


def test_the_next_level_is_announced_until_there_is_none() -> None:
    assert TABLE.next_level_at(BORN, BORN) == BORN + 3 * DAY
    assert TABLE.next_level_at(BORN, BORN + 3 * DAY) == BORN + 14 * DAY
    assert TABLE.next_level_at(BORN, BORN + 14 * DAY) is None


FIGURES = {
    "daily": st.integers(1, 10_000),
    "per_minute": st.integers(1, 1_000),
    "base_delay_ms": st.integers(0, 60_000),
    "jitter_ms": st.integers(0, 60_000),
    "hours": st.sampled_from([Hours.parse("00:00-24:00"), Hours.parse("22:00-06:00")]),
}


@given(st.fixed_dictionaries({}, optional=FIGURES), st.sampled_from(TrustLevel))
def test_any_subset_of_the_figures_can_be_overridden_and_the_rest_stays(
    given: dict[str, object], level: TrustLevel
) -> None:
    limits = Overrides(**given).apply(STANDARD[level])  # type: ignore[arg-type]
    for field in fields(Limits):
        assert getattr(limits, field.name) == given.get(field.name, getattr(STANDARD[level], field.name))


def test_an_override_holds_at_every_level() -> None:
    for age in (0, 3 * DAY, 14 * DAY):
        assert TABLE.limits(BORN, BORN + age, Overrides(daily=7)).daily == 7


def test_a_jitter_of_ones_own_lies_above_the_base_in_any_preset() -> None:
    assert Overrides(jitter_ms=1_000).apply(CONSERVATIVE[COLD]).delay_range == (5_000, 6_000)


def test_a_base_of_ones_own_keeps_the_30_percent_of_the_conservative_preset() -> None:
    assert Overrides(base_delay_ms=10_000).apply(CONSERVATIVE[COLD]).delay_range == (7_000, 13_000)
    assert Overrides(base_delay_ms=10_000).apply(STANDARD[COLD]).delay_range == (10_000, 13_000)


def test_a_delay_is_never_negative() -> None:
    assert replace(CONSERVATIVE[COLD], base_delay_ms=1_000).delay_range == (0, 2_500)


def test_midnight_to_midnight_means_always() -> None:
    assert Overrides(hours=Hours.parse("00:00-24:00")).apply(STANDARD[COLD]).hours.always
    assert not any(limits.hours.always for limits in STANDARD.values())


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("level", TrustLevel)
def test_a_levels_limits_can_be_set_by_hand_for_any_other(preset: str, level: TrustLevel) -> None:
    wanted = PRESETS[preset][level]
    for limits in (*STANDARD.values(), *CONSERVATIVE.values()):
        made = Overrides.of(wanted).apply(limits)
        assert (made.daily, made.per_minute, made.hours) == (wanted.daily, wanted.per_minute, wanted.hours)
        assert made.delay_range == wanted.delay_range


@pytest.mark.parametrize(
    ("overrides", "figures"),
    [
        (Overrides(), ()),
        (Overrides(daily=21), ("daily",)),
        (Overrides(per_minute=6), ("per_minute",)),
        (Overrides(base_delay_ms=4_999, jitter_ms=0), ("delay",)),
        (Overrides(base_delay_ms=4_999), ()),  # most pauses are longer than the shortest of the table
        (Overrides(hours=Hours.parse("08:59-20:00")), ("hours",)),
        (Overrides(hours=Hours.parse("20:00-10:00")), ("hours",)),
        (Overrides(20, 5, 5_000, 3_000, Hours.parse("09:00-21:00")), ()),
        (Overrides(1, 1, 9_000, 0, Hours.parse("10:00-11:00")), ()),
    ],
)
def test_what_is_bolder_than_the_table(overrides: Overrides, figures: tuple[str, ...]) -> None:
    assert bolder(overrides.apply(STANDARD[COLD]), STANDARD[COLD]) == figures


@pytest.mark.parametrize("level", TrustLevel)
def test_the_conservative_preset_is_not_bolder(level: TrustLevel) -> None:
    assert bolder(CONSERVATIVE[level], STANDARD[level]) == ()
