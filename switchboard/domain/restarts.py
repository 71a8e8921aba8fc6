"""When a worker that ended, or went silent, is started again. The gaps grow; a crash loop is given up."""

from dataclasses import dataclass

from switchboard.domain.sessions import Session, State, Wanted


@dataclass(frozen=True, slots=True)
class RestartRules:
    first_gap_ms: int = 2_000
    longest_gap_ms: int = 15 * 60_000
    loop_ends: int = 5
    """This many unasked ends within the window are a crash loop."""
    loop_window_ms: int = 10 * 60_000


@dataclass(frozen=True, slots=True)
class Again:
    at: int
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GiveUp:
    ends: tuple[int, ...]


def after_end(rules: RestartRules, ends: tuple[int, ...], now: int) -> Again | GiveUp:
    """A worker ended that should run. `ends` are the earlier times this happened."""
    recent = (*(end for end in ends if end > now - rules.loop_window_ms), now)
    if len(recent) >= rules.loop_ends:
        return GiveUp(recent)
    return Again(now + _gap(rules, len(recent) - 1), recent)


def is_silent(session: Session, since: int, timeout_ms: int, now: int) -> bool:
    """Its worker should run, and has not proved for too long that it lives.

    `since` is when we began to listen: what nobody could hear is no silence.
    """
    if session.wanted is not Wanted.RUN or session.launched != session.generation:
        return False
    if session.state not in (State.STARTING, State.QR_READY, State.CONNECTED, State.DISCONNECTED):
        return False
    moments = (since, session.started_at, session.last_ping or 0)
    # What lies ahead was noted by a clock that has been set since.
    return now - max((moment for moment in moments if moment <= now), default=now) > timeout_ms


def after_silence(rules: RestartRules, silences: int, now: int) -> int:
    """No PING: start it anew at this moment. Never given up: a network that is down for hours comes back, too."""
    return now + (0 if silences == 0 else _gap(rules, silences))


def _gap(rules: RestartRules, step: int) -> int:
    return min(rules.first_gap_ms << 2 * min(step, 20), rules.longest_gap_ms)
