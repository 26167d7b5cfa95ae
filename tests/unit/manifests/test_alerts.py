"""The alerts: each asks what is really exposed, and is explained where its runbook says."""

import re
from dataclasses import fields

import promql_parser
import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.compiling import SmallCluster
from support.manifests import MANIFESTS, chooses, documents, of_kind
from support.pages import PAGES, headings
from support.resources import fair_pool

from fairpool_gateway import errors
from fairpool_operator import metrics as operator_metrics

FOUND = documents(MANIFESTS / "components" / "monitoring" / "alerts.yaml")
MONITORS = documents(MANIFESTS / "components" / "monitoring" / "monitors.yaml")
RULES = [rule for each in FOUND for group in each["spec"]["groups"] for rule in group["rules"]]
OPERATIONS = PAGES / "operations.md"

BY_SCRAPING = {"namespace", "pod", "container", "job", "pool"}
"""Labels that a scrape adds."""

GATEWAYS = {
    name: set(re.findall(r"`(\w+)`", labels))
    for name, labels in re.findall(
        r"^\| `(fairpool_\w+)` \| \w+ \| (.+?) \|", OPERATIONS.read_text(encoding="utf-8"), re.MULTILINE
    )
}
"""What a gateway exposes: the table in docs/operations.md, which another test holds against a gateway."""


def operators():
    """What the operator exposes, with the labels and their values."""
    tally = operator_metrics.Tally()
    gauges = operator_metrics.Gauges(True, True, *[0] * (len(fields(operator_metrics.Gauges)) - 2))
    text = operator_metrics.exposition(tally, lambda: gauges)().decode()
    return {
        sample.name: {label for each in family.samples for label in each.labels}
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


EXPOSED = {**GATEWAYS, **operators(), "up": set()}


def selectors(expression):
    """Every series that an expression asks for, by its metric and what it matches."""
    found = []
    promql_parser.walk(promql_parser.parse(expression), lambda node: found.append(node) or True)
    series = [getattr(each, "vector_selector", each) for each in found]
    return {
        each.name: {(match.name, match.value) for match in each.matchers.matchers}
        for each in series
        if isinstance(each, promql_parser.VectorSelector)
    }


def seconds(duration):
    """Of a duration as Prometheus writes one."""
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600}[duration[-1]]


def unknown(expression):
    """The metrics and labels in an expression that nothing exposes."""
    asked = selectors(expression)
    assert asked
    labels = {(name, label) for name, matches in asked.items() for label, _ in matches}
    return {name for name in asked if name not in EXPOSED} | {
        f"{name}{{{label}}}" for name, label in labels if name in EXPOSED and label not in EXPOSED[name] | BY_SCRAPING
    }


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
class TestAnAlert:
    def test_asks_for_metrics_and_labels_that_are_exposed(self, rule):
        assert unknown(rule["expr"]) == set()

    def test_asks_for_reasons_that_requests_end_with(self, rule):
        refusals = {each.reason for each in vars(errors).values() if hasattr(each, "reason")}
        ends = refusals | {"answered", "answer_broken", "tenant_gone"}
        for matches in selectors(rule["expr"]).values():
            assert {one for label, value in matches if label == "reason" for one in value.split("|")} <= ends

    def test_says_in_a_sentence_what_is_wrong_with_labels_that_it_has(self, rule):
        assert set(rule["annotations"]) == {"summary", "runbook"}
        assert rule["annotations"]["summary"].endswith(".")
        told = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert told or "{{" not in rule["annotations"]["summary"] or "$value" in rule["annotations"]["summary"]
        own = set().union(*(EXPOSED[name] for name in selectors(rule["expr"])))
        assert told <= own | BY_SCRAPING

    def test_waits_until_several_scrapes_have_said_so(self, rule):
        scrapes = [each["interval"] for monitor in MONITORS for each in monitor["spec"]["podMetricsEndpoints"]]
        assert seconds(rule["for"]) >= 4 * max(map(seconds, scrapes))

    def test_has_lasted_for_as_long_as_its_sentence_says(self, rule):
        told = re.findall(r"for (\d+) minutes", rule["annotations"]["summary"])
        times = {seconds(each) for each in (rule["for"], *re.findall(r"\[(\w+)\]", rule["expr"]))}
        assert {60 * int(minutes) for minutes in told} <= times

    def test_has_a_section_of_its_own_in_the_runbook(self, rule):
        page, _, place = rule["annotations"]["runbook"].partition("#")
        assert page == "docs/operations.md"
        assert place == rule["alert"].lower()
        assert place in headings(OPERATIONS)


def test_every_section_of_the_runbook_is_an_alerts():
    sections = {place for place in headings(OPERATIONS) if place.startswith("fairpool")}
    assert sections == {rule["alert"].lower() for rule in RULES}


def test_the_runbook_names_metrics_that_are_exposed():
    runbook = OPERATIONS.read_text(encoding="utf-8").split("## Alerts")[1].split("\n## ")[0]
    named = set(re.findall(r"fairpool_[a-z_]+[a-z]", runbook))
    assert named
    assert named <= EXPOSED.keys()


def test_what_a_fresh_list_makes_good_is_told_after_the_next_one_at_the_earliest():
    [rule] = [rule for rule in RULES if "fairpool_operator_corrections_total" in selectors(rule["expr"])]
    [every] = re.findall(r"`--list-seconds (\d+)`", (PAGES / "operator.md").read_text(encoding="utf-8"))
    assert seconds(rule["for"]) > int(every)


def test_what_is_not_exposed_would_be_found():
    assert unknown("rate(fairpool_weights[5m]) > 0") == {"fairpool_weights"}
    assert unknown('sum(rate(fairpool_outcomes_total{cause="x"}[5m])) > 0') == {"fairpool_outcomes_total{cause}"}


class TestTheMonitors:
    def test_of_gateways_choose_their_pods_and_their_admin_port_anywhere(self):
        (monitor,) = [each for each in MONITORS if each["metadata"]["name"] == "fairpool-gateways"]
        made = {each["kind"]: each for each in SmallCluster(fair_pool()).compiled().objects}["Deployment"]
        self.choose(monitor, made)
        assert monitor["spec"]["namespaceSelector"] == {"any": True}

    def test_keep_what_a_gateway_says_of_its_endpoints(self):
        """A scrape has a label `endpoint` of its own, which would take the place of an engine's."""
        (monitor,) = [each for each in MONITORS if each["metadata"]["name"] == "fairpool-gateways"]
        assert all(each["honorLabels"] for each in monitor["spec"]["podMetricsEndpoints"])

    def test_tell_the_pool_of_a_gateway_by_the_label_of_its_pod(self):
        """As Prometheus relabels: a pod's labels have its own prefix, and `_` for what a name may not hold."""
        (monitor,) = [each for each in MONITORS if each["metadata"]["name"] == "fairpool-gateways"]
        made = {each["kind"]: each for each in SmallCluster(fair_pool()).compiled().objects}["Deployment"]
        labels = {
            "__meta_kubernetes_pod_label_" + re.sub(r"\W", "_", name): value
            for name, value in made["spec"]["template"]["metadata"]["labels"].items()
        }
        [endpoint] = monitor["spec"]["podMetricsEndpoints"]
        [rule] = [each for each in endpoint["relabelings"] if each["targetLabel"] == "pool"]
        assert [labels[name] for name in rule["sourceLabels"]] == ["llama"]

    def test_of_the_operator_choose_its_pods_and_port(self):
        (monitor,) = [each for each in MONITORS if each["metadata"]["name"] == "fairpool-operator"]
        (operator,) = of_kind(documents(MANIFESTS / "base" / "operator.yaml"), "Deployment")
        self.choose(monitor, operator)

    def test_name_the_jobs_that_the_alerts_ask_for(self):
        named = {
            each["replacement"]
            for monitor in MONITORS
            for endpoint in monitor["spec"]["podMetricsEndpoints"]
            for each in endpoint["relabelings"]
            if each["targetLabel"] == "job"
        }
        asked = {value for rule in RULES for _, value in selectors(rule["expr"]).get("up", ())}
        assert asked == named

    def choose(self, monitor, deployment):
        pod = deployment["spec"]["template"]
        assert chooses(monitor["spec"]["selector"], pod["metadata"]["labels"])
        ports = {port["name"] for container in pod["spec"]["containers"] for port in container["ports"]}
        [endpoint] = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint["port"] in ports
