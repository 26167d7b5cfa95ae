"""`fairpool lab run` and `fairpool lab list`: what is told, that it is repeatable, and what is said of a mistake."""

from __future__ import annotations

import contextlib
import io
import json

import pytest
from support.vllm_logs import answered

from fairpool_lab import traces
from fairpool_lab.cli import main
from fairpool_lab.policies import POLICIES
from fairpool_lab.simulation import ESTIMATORS

FAST = ("--engine", "fixed:1400")
TRACE = """arrival_s,tenant,input_tokens,output_tokens,max_tokens
0,a,10,5,16
0,b,400,30,64
0.5,a,10,7,16
0.5,a,3000,9000,9000
1,b,0,3,8
"""


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(TRACE, encoding="utf-8")
    return str(path)


def told(capsys, *arguments):
    assert main(["lab", "run", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def figures():
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(["lab", "run", "--json", *FAST, "--weights", "ranked", "--estimator", "oracle"]) == 0
    return json.loads(said.getvalue())


class TestTheFigures:
    def test_fair_queueing_keeps_its_bound_and_order_of_arrival_does_not(self, figures):
        arrival, fair = figures["policies"]
        assert (arrival["policy"], fair["policy"]) == ("arrival-order", "sfq")
        assert fair["exceeded"] == 0
        assert arrival["exceeded"] > 0
        assert fair["greatest_difference"] < 0.02 < arrival["greatest_difference"]
        assert fair["jain"] > arrival["jain"]

    def test_both_serve_the_same_requests_at_the_same_rate(self, figures):
        arrival, fair = figures["policies"]
        assert arrival["requests"] == fair["requests"] == fair["completed"] == len(traces.read(traces.EXCERPT))
        assert fair["tokens_per_second"] == pytest.approx(arrival["tokens_per_second"], rel=0.01)

    @pytest.mark.parametrize("number", [0, 1])
    def test_the_tenants_add_up_to_the_whole(self, figures, number):
        outcome = figures["policies"][number]
        for each in ("requests", "completed"):
            assert sum(tenant[each] for tenant in outcome["tenants"]) == outcome[each]
        assert sum(tenant["received_share"] for tenant in outcome["tenants"]) == pytest.approx(1)
        assert sum(tenant["entitled_share"] for tenant in outcome["tenants"]) == pytest.approx(1, abs=0.01)
        assert {tenant["weight"] for tenant in outcome["tenants"]} == {1, 2, 4}
        assert all(tenant["wait"]["p50"] <= tenant["wait"]["p99"] for tenant in outcome["tenants"])

    def test_nobody_is_served_faster_than_alone_and_fairness_slows_light_tenants_least(self, figures):
        arrival, fair = figures["policies"]
        for outcome in (arrival, fair):
            assert all(tenant["slowdown"]["p50"] >= 0.999 for tenant in outcome["tenants"])
        lightest = [outcome["tenants"][-1]["slowdown"]["p50"] for outcome in (fair, arrival)]
        assert lightest[0] < lightest[1] / 10


class TestRepeating:
    def test_the_same_command_tells_the_same(self, trace, capsys):
        arguments = ("--trace", trace, "--engine", "a100", "--seed", "3")
        assert told(capsys, *arguments) == told(capsys, *arguments)

    def test_chance_follows_from_the_seed(self, capsys):
        arguments = (*FAST, "--policy", "sfq", "--estimator", "MaxTokensRatio")
        one, same, other = (told(capsys, *arguments, "--seed", seed)["policies"] for seed in ("1", "1", "2"))
        assert one == same != other


class TestOptions:
    def test_engines_slots_and_policies_can_be_chosen(self, trace, capsys):
        figures = told(
            capsys, "--trace", trace, "--engine", "h100", "--endpoints", "2", "--slots", "3", "--policy", "sfq"
        )
        assert (figures["engine"], figures["endpoints"], figures["slots"]) == ("h100", 2, 3)
        assert [outcome["policy"] for outcome in figures["policies"]] == ["sfq"]

    def test_requests_that_do_not_fit_are_left_out_when_that_is_wanted(self, trace, capsys):
        figures = told(capsys, "--trace", trace, "--drop-longer")
        assert figures["left_out"] == 1
        assert figures["policies"][0]["requests"] == 4

    def test_clients_may_leave(self, trace, capsys):
        figures = told(capsys, "--trace", trace, "--engine", "fixed:100", "--leave-after", "3")
        (outcome, _) = figures["policies"]
        assert sum(tenant["cancelled"] for tenant in outcome["tenants"]) == 5 - outcome["completed"] > 0

    def test_a_faster_trace_is_a_shorter_one(self, trace, capsys):
        until = [
            told(capsys, "--trace", trace, *FAST, "--speed", speed)["policies"][0]["until"] for speed in ("1", "4")
        ]
        assert until == [1.0, 0.25]

    def test_weights_are_given_by_name(self, trace, capsys):
        figures = told(capsys, "--trace", trace, *FAST, "--weights", "a=3,b=7")
        assert {each["tenant"]: each["weight"] for each in figures["policies"][1]["tenants"]} == {"a": 3, "b": 7}

    def test_prompts_that_begin_alike_are_found_in_the_cache(self, tmp_path, capsys):
        path = tmp_path / "trace.jsonl"
        line = {"timestamp": 0, "input_length": 1100, "output_length": 2, "hash_ids": [1, 2, 3]}
        path.write_text("\n".join(json.dumps(line | {"timestamp": at}) for at in (0, 5000)), encoding="utf-8")
        arguments = ("--trace", str(path), "--engine", "a100", "--policy", "sfq")
        assert told(capsys, *arguments)["policies"][0]["cached_share"] == 0
        cached = told(capsys, *arguments, "--prefix-cache", "512")
        assert cached["policies"][0]["cached_share"] == pytest.approx(1024 / 2200)


class TestWhoseRequestsTheyAre:
    AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "2023-11-16 18:15:46.68,37,4\n" * 60

    @pytest.fixture
    def azure(self, tmp_path):
        path = tmp_path / "azure.csv"
        path.write_text(self.AZURE, encoding="utf-8")
        return str(path)

    def test_a_trace_that_names_no_tenants_is_one_tenants_or_dealt_to_some(self, azure, capsys):
        def tenants(*options):
            outcome = told(capsys, "--trace", azure, *FAST, "--policy", "sfq", *options)["policies"][0]
            return {tenant["tenant"]: tenant["requests"] for tenant in outcome["tenants"]}

        assert tenants() == {"all": 60}
        dealt = tenants("--deal", "3")
        assert (dealt.keys(), sum(dealt.values())) == ({"t1", "t2", "t3"}, 60)
        assert tenants("--deal", "3") == dealt != tenants("--deal", "3", "--seed", "2")

    def test_other_columns_are_told_by_name(self, azure, capsys):
        columns = "arrival=TIMESTAMP,tenant=GeneratedTokens,input_tokens=ContextTokens,output_tokens=GeneratedTokens"
        outcome = told(capsys, "--trace", azure, *FAST, "--columns", columns)["policies"][0]
        assert [tenant["tenant"] for tenant in outcome["tenants"]] == ["4"]

    def test_vllms_log_has_them_in_ids(self, tmp_path, capsys):
        path = tmp_path / "vllm.log"
        path.write_text("".join(answered("chatcmpl-a-1", "chatcmpl-b-2")), encoding="utf-8")
        outcome = told(capsys, "--trace", str(path), *FAST, "--tenant-in-id", "chatcmpl-(.+)-")["policies"][0]
        assert {tenant["tenant"] for tenant in outcome["tenants"]} == {"a", "b"}


class TestTheTables:
    def test_people_get_a_table_for_each_policy_and_one_of_all(self, trace, capsys):
        assert main(["lab", "run", "--trace", trace, *FAST]) == 0
        said = capsys.readouterr().out
        assert "5 requests of 2 tenants from trace.csv; 1 x fixed:1400 with 1 slots, costs by TenantAverage" in said
        for title in ("arrival-order: tokens", "sfq: tokens", "side by side", "gap /"):
            assert title in said
        assert "\x1b" not in said

    def test_comparing_is_running_all_policies_in_one_table(self, trace, capsys):
        assert main(["lab", "compare", "--trace", trace, *FAST]) == 0
        said = capsys.readouterr().out
        assert "tokens and shares at the last arrival" not in said
        assert all(f"\n {name} " in said for name in POLICIES)
        assert main(["lab", "compare", "--trace", trace, *FAST, "--json"]) == 0
        compared = json.loads(capsys.readouterr().out)
        assert compared == told(capsys, "--trace", trace, *FAST, "--policy", *POLICIES)

    def test_a_page_with_charts_says_how_it_came_about(self, trace, tmp_path, capsys):
        page = tmp_path / "page.html"
        assert main(["lab", "run", "--trace", trace, *FAST, "--seed", "4", "--html", str(page)]) == 0
        text = page.read_text(encoding="utf-8")
        assert f"fairpool lab run --trace {trace} --engine fixed:1400 --seed 4 --html {page}" in text
        assert "trace.csv under 2 orders" in text
        assert "5 requests of 2 tenants" in text
        assert text.count("<svg") >= 10

    def test_the_page_tells_the_same_figures_as_programs_are_told(self, capsys, tmp_path):
        page = tmp_path / "page.html"
        figures = told(capsys, *FAST, "--weights", "ranked", "--html", str(page))
        text = page.read_text(encoding="utf-8")
        for outcome in figures["policies"]:
            for figure in (
                f"{outcome['exceeded']:,} of {outcome['pairs']:,}",
                f"{outcome['gap_over_bound']:.2f}",
                f"{outcome['greatest_difference']:.2%}",
                f"{outcome['jain']:.4f}",
                f"{outcome['greatest_service_difference']:,.1f}",
                f"{outcome['mean_service_difference']:,.1f}",
                f"{outcome['tokens_per_second']:,.0f}",
                f"{outcome['utilisation']:.1%}",
            ):
                assert f"<td>{figure}</td>" in text

    def test_a_page_that_cannot_be_written_is_an_error(self, trace, tmp_path, capsys):
        page = tmp_path / "none" / "page.html"
        assert main(["lab", "run", "--trace", trace, *FAST, "--policy", "sfq", "--html", str(page)]) == 2
        assert f"{page} cannot be written: No such file or directory" in capsys.readouterr().err

    def test_the_list_names_everything_with_its_source(self, capsys):
        assert main(["lab", "list", "--json"]) == 0
        lists = json.loads(capsys.readouterr().out)
        assert [each["name"] for each in lists["policies"]] == [listed.usage for listed in POLICIES.values()]
        assert [each["name"] for each in lists["estimators"]] == list(ESTIMATORS)
        assert [each["name"] for each in lists["engines"]] == ["fixed[:RATE]", "a10g", "a100", "h100"]
        assert all(each["source"] for listed in lists.values() for each in listed)
        assert main(["lab", "list"]) == 0
        said = capsys.readouterr().out
        assert all(name in said for name in ("sfq", "a10g", "fixed[:RATE]", "oracle", traces.EXCERPT.name))


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--policy", "lottery"), "--policy: 'lottery' is none of arrival-order, rpm[:PER_MINUTE], "),
            (("--policy", "drr:0"), "--policy: 'drr:0' is none of "),
            (("--engine", "b200"), "--engine: 'b200' is none of fixed[:RATE], a10g, a100, h100"),
            (("--engine", "fixed:fast"), "--engine: 'fast' is no rate; write fixed:250"),
            (("--engine", "fixed:-1"), "'-1' is no rate"),
            (("--estimator", "guess"), "--estimator: 'guess' is none of TenantAverage, "),
            (("--weights", "a:3"), "--weights: 'a:3' is not TENANT=WEIGHT"),
            (("--weights", "a=0"), "'a=0' is not TENANT=WEIGHT, with a weight of 1 to 1000"),
            (("--weights", "c=2"), "--weights: the trace has no tenant 'c'"),
            (("--slots", "0"), "--slots: must be positive, not 0"),
            (("--endpoints", "-1"), "--endpoints: must be positive, not -1"),
            (("--speed", "nan"), "--speed: must be positive, not nan"),
            (("--leave-after", "-1"), "--leave-after: must be positive, not -1"),
            (("--prefix-cache", "0"), "--prefix-cache: must be positive, not 0"),
            (("--deal", "0"), "--deal: must be from 1 to 10,000, not 0"),
            (("--deal", "2"), "--deal: this trace tells whose its requests are"),
            (("--tenant-in-id", "("), "--tenant-in-id: '(' is no regular expression: "),
            (("--tenant-in-id", "id"), "--tenant-in-id: 'id' has no group around the tenant"),
            (("--columns", "tenant"), "--columns: 'tenant' is not WHAT=COLUMN"),
            (("--engine", "a10g"), "1 of 5 requests have more than the 10,000 tokens that a10g can hold"),
        ],
    )
    def test_an_option_that_cannot_be_used_is_named(self, trace, arguments, message, capsys):
        assert main(["lab", "run", "--trace", trace, "--engine", "a100", *arguments]) == 2
        assert message in capsys.readouterr().err

    def test_a_trace_that_cannot_be_read_is_named_with_its_line(self, tmp_path, capsys):
        path = tmp_path / "trace.csv"
        path.write_text(TRACE + "0.2,a,1,1,1\n", encoding="utf-8")
        assert main(["lab", "run", "--trace", str(path)]) == 2
        assert f"{path}:7: " in capsys.readouterr().err

    def test_a_page_that_cannot_be_written_is_said_so(self, trace, tmp_path, capsys):
        assert main(["lab", "run", "--trace", trace, *FAST, "--html", str(tmp_path / "no" / "page.html")]) == 2
        assert "cannot be written" in capsys.readouterr().err

    def test_nothing_is_left_when_all_requests_are_too_long(self, tmp_path, capsys):
        path = tmp_path / "trace.csv"
        path.write_text("arrival_s,tenant,input_tokens,output_tokens\n0,a,20000,1\n", encoding="utf-8")
        assert main(["lab", "run", "--trace", str(path), "--drop-longer"]) == 2
        assert "no request is left" in capsys.readouterr().err
