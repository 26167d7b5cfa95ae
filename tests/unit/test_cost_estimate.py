"""Estimates: what they start from, what they learn from, and that in the long run they are true."""

import heapq
import random
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from statistics import mean
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool_gateway.cost import CostModel, Estimator, OutputEstimator, Shape, Used, learned
from fairpool_gateway.sfq import Scheduler

RATIO = CostModel(output_estimator=OutputEstimator.MAX_TOKENS_RATIO)


def shape(text_bytes=400, input_tokens=0, choices=1, max_tokens=None, *, generates=True) -> Shape:
    return Shape("m", True, text_bytes, input_tokens, choices, max_tokens, generates)


def taught(*used: Used, by: Shape, tenant: str = "a", model: CostModel | None = None) -> Estimator:
    estimator = Estimator(model or CostModel())
    for each in used:
        estimator.learn(tenant, by, each)
    return estimator


class TestAtFirst:
    def test_a_byte_is_a_quarter_of_a_token_and_an_answer_is_256(self):
        assert Estimator(CostModel()).estimate("a", shape(400)) == 100 + 2 * 256

    def test_the_weights_are_the_pools(self):
        assert Estimator(CostModel(input_weight=3, output_weight=5)).estimate("a", shape(400)) == 3 * 100 + 5 * 256

    def test_each_answer_counts(self):
        assert Estimator(CostModel()).estimate("a", shape(400, choices=3)) == 100 + 2 * 3 * 256

    def test_known_tokens_count_as_they_are(self):
        assert Estimator(CostModel()).estimate("a", shape(0, input_tokens=70, generates=False)) == 70

    def test_an_empty_request_costs_a_token(self):
        assert Estimator(CostModel()).estimate("a", shape(0, generates=False)) == 1

    def test_max_tokens_alone_says_nothing(self):
        assert Estimator(RATIO).estimate("a", shape(0, max_tokens=9000)) == 2 * 256


class TestLearning:
    def test_the_first_answer_replaces_the_guess(self):
        assert taught(Used(100, 40), by=shape(400)).estimate("a", shape(400)) == 100 + 2 * 40

    def test_answers_are_learned_one_by_one(self):
        assert taught(Used(100, 80), by=shape(400, choices=2)).estimate("a", shape(400, choices=3)) == 100 + 2 * 120

    def test_the_tokens_of_text_are_learned(self):
        estimator = taught(*[Used(400, 0)] * 300, by=shape(400))
        assert estimator.estimate("a", shape(1000)) == 1000

    def test_a_large_request_teaches_more_about_text_than_a_small_one(self):
        estimator = Estimator(CostModel())
        for _ in range(300):
            estimator.learn("a", shape(10), Used(30, 0))
            estimator.learn("a", shape(9990), Used(2470, 0))
        assert estimator.estimate("a", shape(10_000)) == pytest.approx(2500, rel=0.02)

    def test_what_an_image_stands_for_is_learned_beside_text(self):
        estimator = Estimator(CostModel())
        for _ in range(200):
            estimator.learn("a", shape(400), Used(100, 0))
            estimator.learn("a", shape(400, input_tokens=1024), Used(100 + 300, 0))
        assert estimator.estimate("a", shape(400)) == pytest.approx(100, abs=2)
        assert estimator.estimate("a", shape(400, input_tokens=1024)) == pytest.approx(400, abs=5)

    def test_token_arrays_stay_exact(self):
        estimator = taught(*[Used(500, 0)] * 50, by=shape(0, input_tokens=500))
        assert estimator.estimate("a", shape(0, input_tokens=321)) == 321

    def test_embeddings_teach_nothing_about_answers(self):
        estimator = taught(*[Used(100, 0)] * 50, by=shape(400, generates=False))
        assert estimator.estimate("a", shape(400)) == 100 + 2 * 256

    def test_another_model_of_cost_keeps_what_was_learned(self):
        estimator = taught(Used(100, 40), by=shape(400, max_tokens=80))
        estimator.configure(RATIO)
        assert estimator.estimate("a", shape(400, max_tokens=1000)) == 100 + 2 * 500

    def test_the_cost_of_what_was_used_is_weighed_like_an_estimate(self):
        assert Estimator(CostModel(input_weight=3, output_weight=5)).cost_of(Used(10, 100)) == 530


class TestTenants:
    def test_a_new_tenant_starts_with_what_the_pool_taught(self):
        estimator = taught(*[Used(400, 40)] * 300, by=shape(400))
        assert estimator.estimate("new", shape(400)) == 400 + 2 * 40

    def test_who_has_taught_something_is_estimated_by_it(self):
        estimator = Estimator(CostModel())
        for _ in range(300):
            estimator.learn("terse", shape(400), Used(100, 10))
            estimator.learn("chatty", shape(400), Used(200, 1000))
        assert estimator.estimate("terse", shape(400)) == 100 + 2 * 10
        assert estimator.estimate("chatty", shape(400)) == 200 + 2 * 1000

    def test_the_least_recent_beyond_the_bound_is_forgotten(self):
        estimator = Estimator(CostModel(), max_tenants=2)
        for tenant in ("a", "b"):
            estimator.learn(tenant, shape(0), Used(0, 10))
        estimator.estimate("a", shape(0))
        estimator.learn("c", shape(0), Used(0, 1000))
        pool = estimator.estimate("nobody", shape(0))
        assert estimator.estimate("a", shape(0)) == 2 * 10
        assert estimator.estimate("b", shape(0)) == pool != 2 * 10

    def test_memory_is_bounded_whoever_comes(self):
        estimator = Estimator(RATIO, max_tenants=100)
        for i in range(200):
            estimator.learn(f"t{i}", shape(400, max_tokens=9), Used(100, 9))
        tracemalloc.start()
        try:
            for i in range(5000):
                estimator.estimate(f"e{i}", shape(400))
                estimator.learn(f"u{i}", shape(400, max_tokens=9), Used(100, 9))
            grown, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert grown < 100 * 2000


class TestMaxTokensRatio:
    def test_an_answer_is_the_learned_part_of_its_limit(self):
        assert (
            taught(Used(0, 50), by=shape(0, max_tokens=200), model=RATIO).estimate("a", shape(0, max_tokens=1000))
            == 500
        )

    def test_without_a_limit_it_is_the_average(self):
        assert taught(Used(0, 50), by=shape(0, max_tokens=200), model=RATIO).estimate("a", shape(0)) == 2 * 50

    def test_a_limit_beyond_the_context_is_the_context(self):
        model = CostModel(output_estimator=OutputEstimator.MAX_TOKENS_RATIO, context_length=1000)
        estimator = taught(Used(0, 500), by=shape(0, max_tokens=1_000_000), model=model)
        assert estimator.estimate("a", shape(0, max_tokens=2_000_000)) == 2 * 500

    def test_a_tenant_with_loose_limits_is_not_judged_by_the_others(self):
        estimator = Estimator(RATIO)
        for _ in range(300):
            estimator.learn("tight", shape(0, max_tokens=100), Used(0, 90))
            estimator.learn("loose", shape(0, max_tokens=10_000), Used(0, 90))
        assert estimator.estimate("tight", shape(0, max_tokens=100)) == pytest.approx(180, abs=2)
        assert estimator.estimate("loose", shape(0, max_tokens=10_000)) == pytest.approx(180, abs=2)

    def test_the_past_fades(self):
        estimator = taught(*[Used(0, 10)] * 300, *[Used(0, 90)] * 300, by=shape(0, max_tokens=100), model=RATIO)
        assert estimator.estimate("a", shape(0, max_tokens=100)) == pytest.approx(180, abs=2)


class TestStreamsThatTellNothing:
    def test_an_event_is_a_token_at_first(self):
        assert Estimator(CostModel()).from_events("a", shape(400), 30) == Used(100, 30, events=30, told=False)

    def test_tokens_per_event_are_learned_from_streams_that_tell_both(self):
        estimator = taught(*[Used(100, 200, events=142)] * 200, by=shape(400))
        assert estimator.from_events("a", shape(400), 71) == Used(100, 100, events=71, told=False)
        assert estimator.from_events("new", shape(400), 71) == Used(100, 100, events=71, told=False)

    def test_without_events_nothing_is_known(self):
        assert Estimator(CostModel()).from_events("a", shape(400), 0) is None

    def test_their_length_is_learned_but_nothing_that_it_was_estimated_with(self):
        told = taught(*[Used(200, 300, events=100)] * 20, by=shape(400))
        counted = taught(*[Used(200, 300, events=100)] * 20, by=shape(400))
        for _ in range(500):
            guess = counted.from_events("a", shape(800), 10)
            assert guess is not None
            counted.learn("a", shape(800), guess)
        assert counted.from_events("a", shape(800), 10) == told.from_events("a", shape(800), 10)
        assert counted.estimate("a", shape(0)) == pytest.approx(2 * 30, abs=2)


class Run(NamedTuple):
    """Always backlogged tenants in front of slots: what was charged and used after warm-up, per tenant."""

    charged: Counter[str]
    used: Counter[str]

    def bias(self) -> float:
        return mean(self.charged[tenant] / self.used[tenant] - 1 for tenant in self.used)


def run(
    estimator: Estimator, make: Callable[[random.Random, int], tuple[Shape, Used]], *, slots=64, requests=8000, seed=1
) -> Run:
    """Dispatch in SFQ's order; a request runs for as long as it generates, and teaches when it is done."""
    chance = random.Random(seed)
    scheduler: Scheduler[tuple[int, str, Shape, Used]] = Scheduler(lambda each: estimator.estimate(each[1], each[2]))
    tenants = ["a", "b", "c", "d"]
    for number, tenant in enumerate(tenants * 2):
        scheduler.arrive(tenant, (-number, tenant, *make(chance, number)))
    flight: list[tuple[float, int, str, Shape, Used]] = []
    now, run = 0.0, Run(Counter(), Counter())
    for number in range(requests):
        if len(flight) == slots:
            now, _, tenant, done, used = heapq.heappop(flight)
            estimator.learn(tenant, done, used)
        decision = scheduler.dispatch()
        assert decision is not None
        _, tenant, asked, used = decision.request
        scheduler.arrive(tenant, (number + 1, tenant, *make(chance, number)))
        heapq.heappush(flight, (now + used.output + used.input / 100, number, tenant, asked, used))
        if number > requests // 8:
            run.charged[tenant] += decision.cost
            run.used[tenant] += estimator.cost_of(used)
    return run


def lively(chance: random.Random, _: int) -> tuple[Shape, Used]:
    """Lengths as traces have them: most are short, some are long."""
    limit = chance.choice([1024, 2048, 4096])
    text = int(chance.lognormvariate(7, 1))
    return shape(text, max_tokens=limit), Used(max(1, int(text * 0.3)), min(limit, int(chance.lognormvariate(5, 1.2))))


def mixed(chance: random.Random, number: int) -> tuple[Shape, Used]:
    """Tiny requests that say so, among long ones that do not."""
    if chance.random() < 0.5:
        return shape(40, max_tokens=1), Used(10, 1)
    return shape(40), Used(10, 1000)


class CappedByLimit(Estimator):
    """Estimates no more than a request allows, as it is tempting to do."""

    def estimate(self, tenant: str, shape: Shape) -> int:
        estimate = super().estimate(tenant, shape)
        return estimate if shape.max_tokens is None else min(estimate, shape.text_bytes // 4 + 2 * shape.max_tokens)


class Circular(Estimator):
    """Learns from its own estimates as if they had been told."""

    def learn(self, tenant: str, shape: Shape, used: Used) -> None:
        super().learn(tenant, shape, Used(used.input, used.output, used.events))


class TestInTheLongRun:
    @pytest.mark.parametrize("estimator", OutputEstimator)
    @pytest.mark.parametrize("slots", [1, 64])
    def test_charges_are_what_was_used(self, estimator: OutputEstimator, slots: int):
        assert abs(run(Estimator(CostModel(output_estimator=estimator)), lively, slots=slots).bias()) < 0.03

    def test_a_nervous_average_would_charge_too_little(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(learned, "RATE", 0.5)
        assert run(Estimator(CostModel()), lively).bias() < -0.03

    def test_mixing_tiny_and_long_requests_does_not_pay(self):
        assert abs(run(Estimator(CostModel()), mixed).bias()) < 0.03

    def test_with_estimates_capped_by_max_tokens_it_would(self):
        assert run(CappedByLimit(CostModel()), mixed).bias() < -0.2

    def test_the_endpoint_may_change_what_it_tells(self):
        """Streams that tell nothing do not hold on to a belief that those which tell disprove."""

        def believed(estimator: Estimator) -> int:
            for _ in range(20):
                for _ in range(30):
                    guess = estimator.from_events("a", shape(400), 50)
                    assert guess is not None
                    estimator.learn("a", shape(400), guess)
                estimator.learn("a", shape(400), Used(400, 50, events=50))
            return estimator.estimate("a", shape(4000, generates=False))

        assert believed(Estimator(CostModel())) > 0.9 * 4000
        assert believed(Circular(CostModel())) < 0.6 * 4000


facts = st.tuples(
    st.sampled_from("abc"),
    st.builds(
        Shape,
        model=st.just("m"),
        stream=st.booleans(),
        text_bytes=st.integers(0, 1 << 25),
        input_tokens=st.integers(0, 1 << 23),
        choices=st.integers(1, 10_000),
        max_tokens=st.none() | st.integers(1, (1 << 31) - 1),
        generates=st.booleans(),
    ),
    st.builds(Used, st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**7), st.booleans()),
)
models = st.builds(
    CostModel,
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.sampled_from(OutputEstimator),
    st.none() | st.integers(1, 10**9),
)


class TestWhateverWasTaught:
    @given(models, st.lists(facts, max_size=20))
    def test_an_estimate_is_a_whole_number_of_tokens_and_at_least_one(self, model, history):
        estimator = Estimator(model, max_tenants=2)
        for tenant, asked, used in history:
            estimate = estimator.estimate(tenant, asked)
            assert type(estimate) is int
            assert estimate >= 1
            guess = estimator.from_events(tenant, asked, used.events)
            assert guess is None or (guess.input >= 0 and guess.output >= 1)
            estimator.learn(tenant, asked, used)

    @given(models, st.lists(facts, max_size=20))
    def test_the_same_facts_in_the_same_order_give_the_same_estimates(self, model, history):
        def estimates() -> list[int]:
            estimator = Estimator(model)
            found = []
            for tenant, asked, used in history:
                found.append(estimator.estimate(tenant, asked))
                estimator.learn(tenant, asked, used)
            return found

        assert estimates() == estimates()

    def test_in_every_process(self):
        program = (
            "from fairpool_gateway.cost import *\n"
            "e = Estimator(CostModel(), max_tenants=20)\n"
            "for i in range(2000):\n"
            "    s = Shape('m', True, i * 7919 % 4001, 0, 1, 1 + i % 99, True)\n"
            "    e.learn(f't{i * 31 % 40}', s, Used(i * 104729 % 997, i * 1299709 % 1009))\n"
            "    print(e.estimate(f't{i % 50}', s))\n"
        )
        outputs = {
            subprocess.run(
                [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
            ).stdout
            for seed in ("1", "2")
        }
        assert len(outputs) == 1
