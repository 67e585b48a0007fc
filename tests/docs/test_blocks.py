"""Every fenced block of the README and the docs is run, or says why it is not.

The rules, for each page:

- ```python blocks are executed in order, in one namespace a page and an empty folder a page;
- ```sh blocks hold `unswayed` commands only, each must end with exit code 0; `small` says how they are cut to test size;
- a ```text block is what the block before it printed (`...` stands for anything);
- a block after `<!-- file: name -->` is also, or (```text) only, written to that file for the blocks that follow;
- a block that cannot follow its rule has the reason in a comment just before it: `<!-- not run: reason -->`.
"""

import contextlib
import doctest
import io
import re
import shlex
import sys
import types
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from unswayed.models.floors import graphs
from unswayed.models.training import pairs

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts),
]
SAMPLES = 200  # the docs show commands at their real size; the tests need only know that they work
FENCE = re.compile(
    r"^(?P<marks>```+|:::+)(?P<language>[^\n`]*)\n(?P<body>.*?)^(?P=marks)[ \t]*$", re.M | re.S
)
REASON = re.compile(r"<!-- not run: (?P<reason>[^>]*\w[^>]*) -->\s*\Z")
FILE = re.compile(r"<!-- file: (?P<name>[\w.-]+) -->\s*\Z")
RUNNABLE = ("python", "sh", "text")


@dataclass(frozen=True)
class Block:
    """One fenced block: where it stands, what it is, and why it is not run (None: it is)."""

    line: int
    language: str
    body: str
    reason: str | None
    file: str | None


def blocks_of(text: str) -> list[Block]:
    found = []
    for fence in FENCE.finditer(text):
        before = text[: fence.start()]
        reason, file = REASON.search(before), FILE.search(before)
        found.append(
            Block(
                before.count("\n") + 1,
                fence["language"].strip(),
                fence["body"],
                reason["reason"] if reason else None,
                file["name"] if file else None,
            )
        )
    return found


def commands_of(body: str) -> list[list[str]]:
    """The command lines of a block; a line that ends in a backslash goes on in the next."""
    lines = body.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.strip() and not line.startswith("#")]


def small(arguments: list[str]) -> list[str]:
    """The same command with at most `SAMPLES` samples, and on a benchmark without training the models of the floor."""
    shorter = list(arguments)
    if "--dataset" in arguments and "--no-floor" not in arguments:
        shorter.append("--no-floor")
    for place, word in enumerate(arguments[:-1]):
        if word == "--samples":
            shorter[place + 1] = str(min(SAMPLES, int(arguments[place + 1])))
    return shorter


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


class Page:
    """Runs the blocks of one page, in order."""

    def __init__(self, name: str) -> None:
        self.module = types.ModuleType("docs_" + re.sub(r"\W", "_", name))
        self.name = name
        self.printed = ""
        self.left_out: set[str] = set()  # benchmarks whose commands could not run

    def run(self, block: Block) -> None:
        if block.file is not None:
            Path(block.file).write_text(block.body)
        if block.reason is not None:
            self.printed = ""
        elif block.language == "python":
            self.printed = self._python(block)
        elif block.language == "sh" and (name := missing_data(block)) is not None:
            self.left_out.add(name)
        elif block.language == "sh":
            self.printed = self._commands(block)
        elif block.language == "text" and block.file is None:
            self._compare(block)

    def _python(self, block: Block) -> str:
        out = io.StringIO()
        # so that a traceback names the line
        code = compile("\n" * block.line + block.body, self.name, "exec")
        with contextlib.redirect_stdout(out):
            exec(code, self.module.__dict__)
        return out.getvalue()

    def _commands(self, block: Block) -> str:
        from unswayed.cli.main import main

        out = io.StringIO()
        for program, *arguments in commands_of(block.body):
            assert program == "unswayed", (
                f"{self.name}:{block.line}: only unswayed commands run; mark this block"
            )
            with contextlib.redirect_stdout(out):
                code = main(small(arguments))
            assert code == 0, f"{self.name}:{block.line}: unswayed {' '.join(arguments)} ended with {code}"
        return out.getvalue()

    def _compare(self, block: Block) -> None:
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        same = doctest.OutputChecker().check_output(block.body, self.printed, flags)
        assert same, f"{self.name}:{block.line}: expected\n{block.body}\nprinted\n{self.printed}"


def missing_data(block: Block) -> str | None:
    """The benchmark that the commands of a block name and that lies neither in $UNSWAYED_DATA nor in the cache."""
    from unswayed.cli.inputs import KARATE
    from unswayed.datasets.catalog import entry
    from unswayed.datasets.sources import find

    named = [name for name in re.findall(r"--dataset (\S+)", block.body) if name != KARATE]
    return next((name for name in named if find(entry(name)) is None), None)


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    yield tmp_path
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_block_runs(path, empty_folder, monkeypatch):
    page = Page(name_of(path))
    monkeypatch.setitem(sys.modules, page.module.__name__, page.module)
    monkeypatch.setattr(graphs, "COUNTS_STEPS", 60)  # whole graphs are learnt in a tenth of the steps
    monkeypatch.setattr(pairs, "PairSettings", partial(pairs.PairSettings, steps=40, warm_up=8))
    for block in blocks_of(path.read_text()):
        page.run(block)
    if page.left_out:
        pytest.skip(f"all but the commands on {', '.join(page.left_out)} ran: no such data on this machine")


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_no_block_is_of_an_unknown_kind(path):
    for block in blocks_of(path.read_text()):
        directive = block.language.startswith("{")
        known = block.language in RUNNABLE or directive
        assert known or block.reason, (
            f"{name_of(path)}:{block.line}: a {block.language!r} block is neither run nor marked"
        )


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_within_the_repository_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#\s]+)", path.read_text())
    lost = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not lost


def test_the_reference_has_every_public_name():
    import unswayed

    text = "".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    documented = set(re.findall(r":: unswayed\.(\w+)", text))
    assert set(unswayed.__all__) - {"__version__"} <= documented


def test_the_checks_can_fail(empty_folder):
    marked = "<!-- not run: needs a cluster -->\n```sh\nray start\n```\n"
    wrong = "```python\nprint(1)\n```\n\n```text\n2\n```\n"
    assert blocks_of(marked)[0].reason == "needs a cluster"
    assert blocks_of("text\n" + wrong)[0].line == 2
    page = Page("none")
    page.run(blocks_of(wrong)[0])
    with pytest.raises(AssertionError, match="expected"):
        page.run(blocks_of(wrong)[1])
    with pytest.raises(AssertionError, match="mark this block"):
        page.run(blocks_of("```sh\nray start\n```\n")[0])
    with pytest.raises(AssertionError, match="ended with 2"):
        page.run(blocks_of("```sh\nunswayed no-such-command\n```\n")[0])


def test_commands_are_cut_to_test_size():
    assert small(["certify", "--samples", "10000"]) == ["certify", "--samples", "200"]
    assert small(["certify", "--dataset", "cora"]) == ["certify", "--dataset", "cora", "--no-floor"]
    assert commands_of("unswayed certify \\\n  --samples 5  # why\n") == [
        ["unswayed", "certify", "--samples", "5"]
    ]
