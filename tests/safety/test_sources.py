"""No data is ever run as code: the source is searched for the ways in which that happens."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import unswayed

ROOT = Path(unswayed.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# what must not be called, and the only places that may
FORBIDDEN_NAMES = {"eval": set(), "exec": set(), "compile": set(), "__import__": set()}
FORBIDDEN_ATTRIBUTES = {
    "exec_module": {"cli/inputs.py"},  # --model file.py:factory is code the user asks to run
    "urlopen": {"datasets/sources.py"},
    "urlretrieve": set(),
    "system": set(),
    "popen": set(),
    "create_connection": {"runners/ray.py"},  # is there a cluster at the address the user gave?
    "unsafe_load": set(),
}
FORBIDDEN_MODULES = {
    "pickle": set(), "cPickle": set(), "dill": set(), "joblib": set(), "marshal": set(), "shelve": set(), "cloudpickle": set(),
    "requests": set(), "http": set(), "ftplib": set(), "yaml": set(), "telnetlib": set(),
    "socket": {"runners/ray.py"},
    "urllib": {"datasets/sources.py"},
    "subprocess": {"datasets/sources.py", "experiments/runs.py"},  # pip, and git for the commit
}  # fmt: skip


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def nodes(path, kind):
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kind)]


def called(path):
    for node in nodes(path, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            owner = function.value.id if isinstance(function.value, ast.Name) else "?"
            yield owner, function.attr, node
        elif isinstance(function, ast.Name):
            yield "", function.id, node


def imported(path):
    for node in nodes(path, ast.Import):
        yield from (alias.name for alias in node.names)
    for node in nodes(path, ast.ImportFrom):
        yield node.module or ""


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nothing_runs_data_as_code(path):
    for owner, function, node in called(path):
        where = f"{name_of(path)}:{node.lineno} calls {function}"
        if owner == "":
            assert name_of(path) in FORBIDDEN_NAMES.get(function, {name_of(path)}), where
        else:
            assert name_of(path) in FORBIDDEN_ATTRIBUTES.get(function, {name_of(path)}), where
        assert not (owner == "torch" and function in ("load", "save", "compile_module")), where
        assert not any(key.arg == "shell" for key in node.keywords), where
        if owner == "np" and function == "load":
            allowed = {key.arg: getattr(key.value, "value", None) for key in node.keywords}
            assert allowed.get("allow_pickle", False) is False, where


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_module_that_unpickles_or_talks_to_the_network(path):
    for module in imported(path):
        allowed = FORBIDDEN_MODULES.get(module.partition(".")[0])
        assert allowed is None or name_of(path) in allowed, f"{name_of(path)} imports {module}"


def test_the_search_finds_what_it_looks_for(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import pickle\nimport torch\ntorch.load('x')\neval('1')\n")
    assert {function for _, function, _ in called(wrong)} >= {"load", "eval"}
    assert "pickle" in set(imported(wrong))


def test_certifying_and_reporting_open_no_connection(tmp_path):
    """A whole run with every way to the network cut."""
    model = tmp_path / "untrained.py"
    model.write_text(
        "from torch_geometric.nn import GCN\n\n\ndef build(num_features, num_classes):\n"
        "    return GCN(num_features, 8, 2, num_classes)\n"
    )
    code = f"""
import socket
def cut(*_, **__): raise AssertionError("a connection was opened")
socket.socket.connect = cut
socket.create_connection = cut
socket.getaddrinfo = cut
from unswayed.cli.main import main
raise SystemExit(main(["certify", "--dataset", "karate", "--nodes", "1,2", "--samples", "30", "--no-floor", "--model", {f"{model}:build"!r},
                       "--report", {str(tmp_path / "page.html")!r}]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    page = (tmp_path / "page.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert "<script src" not in page
    assert "@import" not in page
