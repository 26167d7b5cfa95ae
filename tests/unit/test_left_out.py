"""How it is said what is missing among the endpoints: counted, named and bounded."""

from fairpool_gateway.discovery import LeftOut
from fairpool_gateway.discovery.left_out import in_words, pods_by_reason


def not_ready(*names, endpoints=1):
    return [LeftOut("not Ready", name, endpoints=endpoints) for name in names]


class TestWords:
    def test_name_a_few_pods_for_each_reason(self):
        without_ip = [LeftOut("without an IP", f"p{number}") for number in range(7)]
        text = "1 pod not Ready: a; 7 pods without an IP: p0, p1, p2, p3, p4 and 2 more"
        assert in_words([*not_ready("a"), *without_ip], 1024) == text

    def test_count_the_endpoints_where_these_are_not_as_many_as_the_pods(self):
        assert in_words(not_ready("a", endpoints=8), 1024) == "1 pod (8 endpoints) not Ready: a"
        assert in_words(not_ready("a", "b", endpoints=2), 1024) == "2 pods (4 endpoints) not Ready: a, b"

    def test_count_none_for_a_pod_that_nobody_waits_for(self):
        assert in_words([LeftOut("ended", "a", endpoints=0)], 1024) == "1 pod ended: a"

    def test_name_a_single_endpoint_by_its_pod_and_port(self):
        assert in_words([LeftOut("draining", "a", port) for port in ("8000", "8001")], 1024) == (
            "2 endpoints draining: a:8000, a:8001"
        )

    def test_are_cut_where_they_would_be_too_many(self):
        text = in_words(not_ready("a" * 250, "b" * 250), 300)
        assert len(text) == 300
        assert text.endswith("…")

    def test_say_what_is_short_before_what_has_to_be_cut(self):
        text = in_words([LeftOut("that serves " + "x" * 250, "a", "8000"), *not_ready("b")], 64)
        assert text.startswith("1 pod not Ready: b; 1 endpoint that serves xxx")


class TestNumbers:
    def test_are_of_pods_by_reason_whole_or_in_part(self):
        missing = [LeftOut("whose port no container names", "a", port) for port in ("x", "y")]
        assert pods_by_reason([*missing, *not_ready("b", "c", endpoints=2)]) == {
            "whose port no container names": 1,
            "not Ready": 2,
        }
