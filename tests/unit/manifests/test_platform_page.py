"""docs/platform.md explains every reason that a condition may have, and no other."""

import ast
import re

from support.pages import PAGES, ROOT, section

from fairpool_operator import errors

OPERATOR = ROOT / "operator" / "fairpool_operator"
ROWS = {
    reason: (set(re.split(r", ", conditions)), meaning, advice)
    for reason, conditions, meaning, advice in re.findall(
        r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$",
        section(PAGES / "platform.md", "What each reason means"),
        re.MULTILINE,
    )
}


def written():
    """Every reason that is written where findings are made, as a word or a constant of the module."""
    found = set()
    for path in [*(OPERATOR / "compile").rglob("*.py"), OPERATOR / "resources" / "conditions.py"]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = {
            node.target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "reason":
                words = (each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant))
                found |= {word for word in words if isinstance(word, str)}
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "Finding":
                continue
            given = [each.value for each in node.keywords if each.arg == "reason"] or node.args[2:3]
            for value in given:
                if isinstance(value, ast.Constant):
                    found.add(value.value)
                elif isinstance(value, ast.Name) and value.id in constants:
                    found.add(constants[value.id])
    return found


def raised():
    """The reasons of refusals."""
    return {
        each.reason
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, errors.Refused) and "reason" in vars(each)
    }


def test_it_explains_every_reason_and_no_other():
    assert set(ROWS) == written() | raised()


def test_reasons_are_found_in_the_code_at_all():
    assert {"Accepted", "NoEndpoint", "RolloutStuck", "Ready", "Pending", "NotAccepted"} <= written()
    assert "KeyUnusable" in raised()


def test_it_says_what_each_means_and_what_to_do():
    for _, meaning, advice in ROWS.values():
        assert meaning.endswith(".")
        assert advice.endswith(".")


def test_it_names_conditions_that_there_are():
    conditions = {"Accepted", "ResolvedRefs", "EndpointsAvailable", "GatewayAvailable", "Programmed", "Ready", "any"}
    assert set().union(*(named for named, *_ in ROWS.values())) == conditions
