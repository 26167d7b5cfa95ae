"""The house rules that no linter checks: what is where, what it is called, and what the README says of it."""

from __future__ import annotations

import ast
import builtins
import importlib
import itertools
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import fairpool_gateway
from fairpool_gateway import errors
from fairpool_lab import errors as lab_errors

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")

REGISTRIES = (
    r"pypi\.org",
    r"pythonhosted\.org",
    r"--(?:extra-)?index-url[ =]",
    r"--find-links[ =]",
    r"--trusted-host[ =]",
    r"index-url\s*=",
    r"\[\[?tool\.uv\.index",
    r"registry\.npmjs\.",
    r"proxy\.golang\.",
    r"conda\.anaconda\.",
    r"deb\.debian\.",
    r"index\.docker\.",
)
"""Addresses of registries, and the options and settings by which tools are told one."""

BUILT_IN = {
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
}

FOR_PYDANTIC = {"RulesBroken"}
"""Raised inside a validator, where pydantic takes a ValueError only, and turned into ConfigInvalid right behind it."""


def files() -> Iterator[Path]:
    """Every file of the project: all but what is ignored."""
    ignored = {line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split()} | {".git"}
    for directory, below, names in os.walk(ROOT):
        below[:] = [name for name in below if name not in ignored]
        yield from (Path(directory, name) for name in names)


def packages() -> list[Path]:
    """The packages that this distribution is made of."""
    return sorted(path.parent for path in ROOT.glob("*/fairpool_*/__init__.py"))


def modules() -> list[Path]:
    return [module for package in packages() for module in package.rglob("*.py")]


class TestThePackages:
    def test_pythons_own_operator_is_not_shadowed(self):
        assert standard_operator(ROOT)
        assert not (ROOT / "operator" / "__init__.py").exists()
        assert not (ROOT / "tests" / "operator" / "__init__.py").exists()

    def test_an_init_file_in_operator_would_shadow_it(self, tmp_path):
        (tmp_path / "operator").mkdir()
        assert standard_operator(tmp_path)
        (tmp_path / "operator" / "__init__.py").touch()
        assert not standard_operator(tmp_path)

    def test_tests_are_no_package(self):
        assert list((ROOT / "tests").rglob("__init__.py")) == []

    def test_no_example_has_to_be_quick(self):
        assert hypothesis.settings().deadline is None

    def test_every_package_is_built_installed_and_checked(self):
        built = PROJECT["tool"]["hatch"]["build"]
        here = [str(package.relative_to(ROOT)) for package in packages()]
        names = [package.name for package in packages()]
        homes = [package.parent.name for package in packages()]
        assert sorted(built["targets"]["wheel"]["packages"]) == here
        assert sorted(built["dev-mode-dirs"]) == homes
        assert sorted(PROJECT["tool"]["mypy"]["packages"]) == names
        assert sorted(PROJECT["tool"]["mypy"]["mypy_path"]) == homes
        assert sorted(PROJECT["tool"]["importlinter"]["root_packages"]) == names
        assert sorted(PROJECT["tool"]["ruff"]["src"]) == homes

    def test_no_module_is_longer_than_350_lines(self):
        lengths = {
            str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()
        }
        assert {path: length for path, length in lengths.items() if not 1 <= length <= 350} == {}

    def test_every_command_can_be_had(self):
        for command in PROJECT["project"]["scripts"].values():
            module, function = command.split(":")
            assert callable(getattr(importlib.import_module(module), function))


class TestLayers:
    contracts = PROJECT["tool"]["importlinter"]["contracts"]

    def test_every_module_of_the_gateway_has_its_layer(self):
        layers = next(contract for contract in self.contracts if contract["type"] == "layers")
        assert (layers["containers"], layers["exhaustive"]) == (["fairpool_gateway"], True)
        named = {name for layer in layers["layers"] for name in layer.replace("|", " ").split()}
        assert named == {module.name for module in pkgutil.iter_modules(fairpool_gateway.__path__)}
        assert layers["layers"][-1] == "errors"

    def test_the_gateway_never_imports_the_lab(self):
        assert any(
            contract["source_modules"] == ["fairpool_gateway"] and "fairpool_lab" in contract["forbidden_modules"]
            for contract in self.contracts
            if contract["type"] == "forbidden"
        )

    def test_the_pure_core_is_held_to_be_pure(self):
        pure = next(contract for contract in self.contracts if "asyncio" in contract.get("forbidden_modules", ()))
        core = (
            "sfq",
            "cost",
            "config",
            "errors",
            "admission",
            "endpoints",
            "placement",
            "dispatcher",
            "usage",
            "identity",
        )
        assert {f"fairpool_gateway.{module}" for module in core} <= set(pure["source_modules"])
        assert {"asyncio", "socket", "time", "random"} <= set(pure["forbidden_modules"])


class TestExceptions:
    refusals = sorted(
        (found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, errors.Refused)),
        key=lambda found: found.__name__,
    )

    @pytest.mark.parametrize("refusal", [found for found in refusals if found is not errors.Refused])
    def test_each_refusal_has_one_status_and_one_reason_of_its_own(self, refusal):
        assert 400 <= refusal.status <= 599
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", vars(refusal)["reason"])
        others = [other for other in self.refusals if other not in (refusal, errors.Refused)]
        assert refusal.reason not in [other.reason for other in others]

    def test_the_page_for_tenants_names_every_reason_with_its_status(self):
        table = (
            (ROOT / "docs" / "tenants.md").read_text(encoding="utf-8").split("| status | reason |")[1].split("\n\n")[0]
        )
        named = {
            (int(status), reason)
            for statuses, reasons in re.findall(r"^\| ([\d, ]+) \| ([a-z_`, ]+) \|", table, re.MULTILINE)
            for status in statuses.split(", ")
            for reason in re.findall(r"`(\w+)`", reasons)
        }
        raised = {(found.status, found.reason) for found in self.refusals if found is not errors.Refused}
        assert raised <= named
        assert {reason for _, reason in named} == {reason for _, reason in raised}

    @pytest.mark.parametrize(
        ("tree", "root"), [(errors, errors.GatewayError), (lab_errors, lab_errors.LabError)], ids=["gateway", "lab"]
    )
    def test_every_exception_of_a_package_grows_on_its_one_tree(self, tree, root):
        package = Path(tree.__file__).parent
        found = {
            node.name: str(path.relative_to(package))
            for path in package.rglob("*.py")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ClassDef)
            and {base.id for base in node.bases if isinstance(base, ast.Name)} & BUILT_IN
        }
        assert {name: path for name, path in found.items() if name not in FOR_PYDANTIC} == {root.__name__: "errors.py"}


class TestDependencies:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")

    def test_all_are_pinned_with_hashes(self):
        for requirement in re.split(r"\n(?! )", self.lock.strip()):
            first, *more = (line for line in requirement.splitlines() if not line.lstrip().startswith("#"))
            assert re.fullmatch(r"[a-z0-9-]+==[\w.+!]+(?: ; .+)? \\", first)
            assert more
            assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?", line) for line in more)

    def test_every_dependency_of_the_project_is_among_them(self):
        extras = PROJECT["project"]["optional-dependencies"]
        wanted = {*PROJECT["project"]["dependencies"], *itertools.chain.from_iterable(extras.values())}
        assert wanted <= set(re.findall(r"^([a-z0-9-]+)==", self.lock, re.MULTILINE))

    def test_no_file_names_a_registry(self):
        named = re.compile("|".join(REGISTRIES), re.IGNORECASE)
        found = {}
        for path in files():
            text = path.read_bytes().decode(errors="replace")
            if match := named.search(text):
                found[str(path.relative_to(ROOT))] = match[0]
        assert found == {}

    @pytest.mark.parametrize(
        "line",
        [
            "--index-" + "url https://somewhere/simple",
            "https://" + "pypi." + "org/simple",
            "[[tool.uv." + 'index]]\nurl = "https://somewhere"',
        ],
    )
    def test_a_registry_would_be_found(self, line):
        assert any(re.search(pattern, line) for pattern in REGISTRIES)

    def test_the_readme_gives_a_reason_for_each_and_for_no_other(self):
        table = README.split("| dependency | why it is there |\n|---|---|\n")[1].split("\n\n")[0]
        rows = [row.strip("| ").split(" | ", 1) for row in table.splitlines()]
        named = [name for row in rows for name in row[0].split(", ")]
        extras = PROJECT["project"]["optional-dependencies"]
        wanted = {*PROJECT["project"]["dependencies"], *extras["lab"], *extras["tracing"], *extras["validate"]}
        for_tests_only = [name for row in rows if row[1].startswith("tests only:") for name in row[0].split(", ")]
        assert sorted(named) == sorted([*wanted, *for_tests_only])
        assert set(for_tests_only) <= set(extras["dev"])
        assert all(len(reason) > 10 for _, reason in rows)


class TestCommandsAndPages:
    def test_make_help_lists_every_target_with_what_it_is_for(self):
        said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
        assert phony
        assert {target: bool(about) for target, about in re.findall(r"^  make (\S+) +(\S.*)$", said, re.MULTILINE)} == (
            dict.fromkeys(phony[1].split(), True)
        )

    @pytest.mark.parametrize(
        "page", sorted(path for path in files() if path.suffix == ".md"), ids=lambda path: path.name
    )
    def test_every_make_command_of_a_page_is_a_target(self, page):
        named = re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
        targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
        assert {one or other for one, other in named} <= targets

    @pytest.mark.parametrize(
        "page", sorted(path for path in files() if path.suffix == ".md"), ids=lambda path: path.name
    )
    def test_every_link_of_a_page_leads_somewhere(self, page):
        links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
        for link in links:
            target, _, place = link.partition("#")
            if "://" in target:
                continue
            there = (page.parent / target).resolve() if target else page
            assert there.exists(), link
            if place:
                assert place in headings(there), link

    def test_the_ci_runs_the_readmes_own_commands(self):
        script = ROOT / ".ci" / "run"
        assert os.access(script, os.X_OK)
        commands = set(re.findall(r"make [a-z-]+", script.read_text(encoding="utf-8")))
        assert {"make test", "make test-engine", "make lint"} <= commands


def standard_operator(directory: Path) -> bool:
    """Whether a process started there imports the standard library's `operator`."""
    code = "import sys; sys.modules.pop('operator', None); import operator; print(operator.__file__)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=directory, env=environment, capture_output=True, text=True, check=True
    )
    return Path(told.stdout.strip()) == Path(os.__file__).with_name("operator.py")


def headings(page: Path) -> set[str]:
    """The anchors that a page's headings give."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}
