"""Reading YAML files: as kubectl reads them, with a line for everything, and nothing that they hold repeated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.yaml_values import VALUES

from fairpool_operator.manifests import Document, Problem, nodes, read_text

FILE = Path("pool.yaml")
POOL = """\
# A pool.
apiVersion: fairpool.dev/v1alpha1
kind: FairPool
metadata: {name: llama}
spec:
  endpoints:
    targetPorts:
    - number: 8000
    -
      name: http
---
kind: TenantWeight
spec:
  weight: 300
"""
SECRET = "sk-that-nobody-may-see"


def objects(text):
    found = list(read_text(text, FILE))
    assert all(isinstance(each, Document) for each in found), found
    return [each.object for each in found]


def problems(text):
    found = list(read_text(text, FILE))
    assert all(isinstance(each, Problem) for each in found), found
    return [(each.line, each.message) for each in found]


def value(text):
    (found,) = objects(f"a: {text}\n")
    return found["a"]


class TestLines:
    @pytest.mark.parametrize(
        ("path", "line"),
        [
            ((), 2),
            (("metadata", "name"), 4),
            (("spec", "endpoints", "targetPorts"), 7),
            (("spec", "endpoints", "targetPorts", 0, "number"), 8),
            (("spec", "endpoints", "targetPorts", 1), 10),
            (("spec", "endpoints", "targetPorts", 1, "name"), 10),
            (("spec", "endpoints", "selector", "matchLabels"), 6),
            (("spec", "endpoints", "targetPorts", 5), 7),
            (("status",), 2),
        ],
    )
    def test_are_those_of_a_field_or_of_the_innermost_thing_around_it(self, path, line):
        pool, _ = read_text(POOL, FILE)
        assert pool.line(path) == line

    def test_go_on_in_the_next_document(self):
        _, weight = read_text(POOL, FILE)
        assert (weight.kind, weight.line(), weight.line(("spec", "weight"))) == ("TenantWeight", 12, 14)

    def test_of_a_field_are_those_of_its_name_wherever_its_value_is(self):
        (found,) = read_text("a: &a {b: 1}\nc:\n  d: *a\n", FILE)
        assert found.line(("c", "d")) == 3


class TestDocuments:
    def test_come_out_of_lists_with_their_lines(self):
        text = "apiVersion: v1\nkind: List\nitems:\n- kind: FairPool\n- kind: TenantWeight\n  spec: {}\n"
        pool, weight = read_text(text, FILE)
        assert (pool.kind, weight.kind, weight.line(("spec",))) == ("FairPool", "TenantWeight", 6)

    def test_of_a_list_of_one_kind_are_of_that_kind(self):
        (pool,) = objects("apiVersion: fairpool.dev/v1alpha1\nkind: FairPoolList\nitems: [{spec: {}}]\n")
        assert pool == {"apiVersion": "fairpool.dev/v1alpha1", "kind": "FairPool", "spec": {}}

    def test_that_are_empty_are_none(self):
        assert objects("---\n# nothing\n---\nkind: A\n---\n") == [{"kind": "A"}]

    def test_may_have_a_comment_behind_what_parts_them(self):
        assert objects("--- # one\nkind: A\n---\t#two\r\nkind: B\n---  \nkind: C\n") == [
            {"kind": "A"},
            {"kind": "B"},
            {"kind": "C"},
        ]

    def test_may_begin_with_the_mark_of_a_file_that_was_put_behind_another(self):
        text = "\ufeffkind: A\n---\n\ufeffkind: B\n--- # three\r\n\ufeff\nkind: C\n"
        found = list(read_text(text, FILE))
        assert [(each.kind, each.line(("kind",))) for each in found] == [("A", 1), ("B", 3), ("C", 6)]

    def test_may_be_json_one_after_another(self):
        found = list(read_text('{"kind": "A",\n\t"b": [1]}\n{"kind": "B"} {"kind":\n"C"}\n', FILE))
        assert [(each.kind, each.line(), each.line(("b",))) for each in found] == [
            ("A", 1, 2),
            ("B", 3, 3),
            ("C", 3, 3),
        ]

    @pytest.mark.parametrize("text", ["\U0001f600 and \\ud83d\\ude00", "\\\\ud83d", "\\", '"', "é\n\t/"])
    def test_of_json_hold_whatever_its_texts_may(self, text):
        assert objects(json.dumps({"kind": "A", "a": text})) == [{"kind": "A", "a": text}]

    def test_with_braces_need_be_no_json(self):
        assert objects("{kind: A}\n---\n{'kind': B}\n") == [{"kind": "A"}, {"kind": "B"}]

    def test_may_be_as_long_as_they_are_where_nothing_is_repeated(self, monkeypatch):
        monkeypatch.setattr(nodes, "_MOST_REPEATED", 20)
        items = "".join(f"- {{kind: A, spec: [{number}]}}\n" for number in range(100))
        assert len(objects(f"apiVersion: v1\nkind: List\nitems:\n{items}")) == 100
        assert len(objects("a: &a [1, 2, 3]\nb: [*a, *a, *a, *a, *a]\n")) == 1
        ((_, message),) = problems("a: &a [1, 2, 3]\nb: [*a, *a, *a, *a, *a, *a]\n")
        assert "use fewer aliases" in message

    def test_share_parts_by_alias_and_merge(self):
        (found,) = objects("a: &a {b: 1, c: 2}\nd: {c: 3, <<: *a}\ne: *a\n")
        assert found == {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}, "e": {"b": 1, "c": 2}}

    def test_may_give_an_anchor_again(self):
        (found,) = objects("a: &a 1\nb: *a\nc: &a [2, &a 3]\nd: *a\n")
        assert found == {"a": 1, "b": 1, "c": [2, 3], "d": 3}


class TestValues:
    @pytest.mark.parametrize(("text", "what"), VALUES.items())
    def test_are_what_kubectl_makes_of_them(self, text, what):
        found = value(text)
        assert (found, type(found)) == (what, type(what))

    def test_that_are_names_of_fields_are_texts(self):
        assert objects("80: a\nyes: b\n1.5: c\n") == [{"80": "a", "true": "b", "1.5": "c"}]


class TestProblems:
    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            ("a: 1\nb: 2\na: 3\n", 3, "a: is given twice in one mapping: remove one"),
            ("a: 1\nb: [\n", 3, "is not YAML"),
            (f"a: *{SECRET}\n", 1, "is not YAML: found undefined alias"),
            (f"\n- {SECRET}\n", 2, "is not a resource: it has to be a mapping"),
            ("apiVersion: v1\nkind: List\nitems:\n- {}\n- 3\n", 5, "each of items has to be a mapping"),
            ("\nkind: List\nitems: []\n", 2, "a List needs apiVersion: v1"),
            ("kind: List\n", 1, "items of a list has to be one"),
            ("kind: List\nitems: a\n", 2, "items of a list has to be one"),
            ("a: &a [*a, *a]\n", 1, "nested too deeply"),
            (f"a:\n {'[' * 102}{']' * 102}\n", 2, "nested too deeply"),
            (f"a:\n {'[' * 900}{']' * 900}\n", 2, "nested too deeply"),
            ("a: !!python/name:os.system ''\n", 1, "has a tag that is not for it"),
            ("a: .inf\n", 1, "a number that JSON does not have"),
            ("a: -.Inf\n", 1, "a number that JSON does not have"),
            ("%YAML 1.1\n---\nkind: A\n", 2, "is not YAML: did not find expected <document start>"),
            (
                f"kind: A\n--- {{kind: {SECRET}}}\n---\nkind: C\n",
                2,
                "has something behind ---: put it into the next line",
            ),
            ("kind: A\n---a: 1\n", 2, "has something behind ---"),
            ('{"a": "\\ud83d"}', 1, "is not YAML"),
            ("\n? [a]\n: b\n", 2, "a field whose name is no text"),
            ("a: 1\n\x07\n", 2, "a character that it does not allow"),
        ],
    )
    def test_have_a_line_and_repeat_nothing(self, text, line, message):
        found = [each for each in read_text(text, FILE) if isinstance(each, Problem)]
        assert [(each.line, message in each.message) for each in found] == [(line, True)]
        assert SECRET not in str(found)

    def test_of_one_document_are_no_other_s(self):
        found = list(read_text("kind: A\n---\nb: [\n---\nkind: C\n", FILE))
        assert [getattr(each, "kind", "a problem") for each in found] == ["A", "a problem", "C"]

    def test_are_told_of_an_alias_that_would_blow_a_text_up(self):
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 9)]
        ((_, message),) = problems("\n".join(lines))
        assert "use fewer aliases" in message


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=12,
)
ODD = st.lists(st.sampled_from([*"-:[]{}&*!|>'\"%#?,\n\t a1", "---\n", "<<: ", "&a ", "*a ", "!!int "])).map("".join)


class Quoting(yaml.SafeDumper):
    """Writes every text with quotes, for PyYAML leaves them off some that mean something else to kubectl, such as N."""


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def reads_back(read_one, what):
    return read_one(yaml.dump({"kind": "A", "what": what}, Dumper=Quoting)) == {"kind": "A", "what": what}


class TestWhateverTheTextIs:
    @given(ODD | st.text())
    def test_it_comes_to_documents_and_problems_with_lines_in_it(self, text):
        for each in read_text(text, FILE):
            line = each.line() if isinstance(each, Document) else each.line
            assert 1 <= line <= len(text) + 1

    @given(PLAIN)
    def test_what_was_written_is_read(self, what):
        assert reads_back(lambda text: objects(text)[0], what)

    def test_a_reader_that_takes_dates_for_dates_would_be_caught(self):
        assert not reads_back(lambda _: yaml.safe_load("{kind: A, what: 2026-12-31}"), "2026-12-31")
