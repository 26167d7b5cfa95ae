"""What conditions say, how they sum up to Ready and Stalled, and when their times move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from fairpool_operator.resources import Condition, Finding, conditions, summarise

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
ACCEPTED = Finding("Accepted", holds=True, reason="Accepted", message="The pool is as it should be.")
NOT_ACCEPTED = Finding("Accepted", holds=False, reason="Conflicted", message="b/search is older: remove one.")
PROGRAMMED = Finding("Programmed", holds=True, reason="Programmed", message="The gateway has it.")
NOT_KNOWN = Finding("Programmed", holds=None, reason="Pending", message="Waiting for the gateway.")
EMPTY = Finding("EndpointsAvailable", holds=False, reason="NoEndpoints", message="No pod is chosen.")

findings = st.builds(
    Finding,
    type=st.sampled_from(["Accepted", "ResolvedRefs", "Programmed"]),
    holds=st.sampled_from([True, False, None]),
    reason=st.sampled_from(["One", "Other"]),
    message=st.text(max_size=20),
)


def summed_up(*found: Finding) -> dict[str, Finding]:
    all_found = summarise(found, needed=("Accepted", "Programmed"), stalling=("Accepted",), ready_message="It serves.")
    return {finding.type: finding for finding in all_found}


class TestReady:
    def test_is_true_when_everything_needed_is(self):
        assert summed_up(ACCEPTED, PROGRAMMED)["Ready"] == Finding(
            "Ready", holds=True, reason="Ready", message="It serves."
        )

    def test_does_not_wait_for_what_is_not_needed(self):
        assert summed_up(ACCEPTED, PROGRAMMED, EMPTY)["Ready"].holds is True

    def test_is_unknown_with_the_reason_of_what_is_not_known(self):
        assert summed_up(ACCEPTED, NOT_KNOWN)["Ready"] == Finding(
            "Ready", holds=None, reason="Pending", message="Waiting for the gateway."
        )

    def test_is_false_for_what_is_false_even_after_something_not_known(self):
        ready = summed_up(NOT_KNOWN, NOT_ACCEPTED)["Ready"]
        assert (ready.holds, ready.reason, ready.message) == (False, NOT_ACCEPTED.reason, NOT_ACCEPTED.message)


class TestStalled:
    def test_is_there_only_while_something_is_refused(self):
        assert "Stalled" not in summed_up(ACCEPTED, NOT_KNOWN, EMPTY)
        stalled = summed_up(NOT_ACCEPTED, NOT_KNOWN)["Stalled"]
        assert (stalled.holds, stalled.reason, stalled.message) == (True, NOT_ACCEPTED.reason, NOT_ACCEPTED.message)

    def test_is_not_there_for_what_may_come_by_itself(self):
        waiting = Finding("Programmed", holds=False, reason="NoGateway", message="Waiting for the gateway.")
        assert "Stalled" not in summed_up(ACCEPTED, waiting)


class TestTime:
    def test_moves_when_the_status_does(self):
        before = conditions([NOT_KNOWN], before=(), generation=1, now=NOW)
        after = conditions([PROGRAMMED], before=before, generation=1, now=LATER)
        assert [condition.last_transition_time for condition in (*before, *after)] == [
            "2026-03-01T12:00:00Z",
            "2026-03-01T13:00:00Z",
        ]

    def test_stays_when_only_the_words_or_the_generation_do(self):
        before = conditions([NOT_KNOWN], before=(), generation=1, now=NOW)
        other = Finding("Programmed", holds=None, reason="NoAnswer", message="The gateway does not answer.")
        (after,) = conditions([other], before=before, generation=2, now=LATER)
        assert (after.last_transition_time, after.observed_generation) == ("2026-03-01T12:00:00Z", 2)
        assert (after.reason, after.message) == ("NoAnswer", "The gateway does not answer.")

    def test_of_a_condition_that_comes_back_is_that_of_its_return(self):
        first = conditions([EMPTY], before=(), generation=1, now=NOW)
        without = conditions([ACCEPTED], before=first, generation=1, now=NOW)
        (again,) = conditions([EMPTY], before=without, generation=1, now=LATER)
        assert again.last_transition_time == "2026-03-01T13:00:00Z"

    def test_is_that_of_the_first_word_where_the_definitions_default_says_the_same(self):
        default = Condition(
            type=NOT_KNOWN.type,
            status="Unknown",
            last_transition_time="1970-01-01T00:00:00Z",
            reason="Pending",
            message="Waiting for the operator.",
        )
        (said,) = conditions([NOT_KNOWN], before=[default], generation=1, now=NOW)
        assert said.last_transition_time == "2026-03-01T12:00:00Z"

    def test_is_written_in_utc_to_the_second(self):
        instant = datetime.fromisoformat("2026-03-01T12:00:00.9+02:00")
        (condition,) = conditions([ACCEPTED], before=(), generation=1, now=instant)
        assert condition.last_transition_time == "2026-03-01T10:00:00Z"


class TestTheSameFindings:
    @given(st.lists(findings, unique_by=lambda finding: finding.type), st.timedeltas(timedelta(), timedelta(days=900)))
    def test_give_the_same_conditions_at_any_later_time(self, found, passed):
        before = conditions(found, before=(), generation=3, now=NOW)
        assert conditions(found, before=before, generation=3, now=NOW + passed) == before

    def test_would_not_if_the_time_always_moved(self):
        def always_moving(found: list[Finding], before: tuple[Condition, ...], now: datetime):
            return conditions(found, before=(), generation=3, now=now)

        before = always_moving([ACCEPTED], (), NOW)
        assert always_moving([ACCEPTED], before, LATER) != before


def test_a_message_longer_than_the_api_takes_is_shortened():
    (condition,) = conditions(
        [Finding("Accepted", holds=False, reason="Invalid", message="x" * 5000)], before=(), generation=1, now=NOW
    )
    assert len(condition.message) == 4096
    assert condition.message.endswith("x ...")
