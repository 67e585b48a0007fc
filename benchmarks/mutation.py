"""Mutation testing: change the theory or the votes a little, and see whether the fast tests notice.

    python benchmarks/mutation.py --mutants 500 --seed 0 --journal mutation.jsonl --out docs/results/benchmarks/mutation.json

Mutants come from cosmic-ray's operators, all of them. Each is ranked by a hash of the seed, its operator and the line it
changes, and the first 500 are tested: the sample is fixed by the seed alone, and a line that is edited changes only its own
mutants' places. Everything happens in a copy of the repository; tests run in a process forked from one that has already imported
numpy, scipy, hypothesis and pytest. Verdicts go to the journal at once, so a run that was stopped goes on where it was.

A mutant is *killed* when a test fails, and *survived* when all tests pass. It is *endless* when one test takes over 30 s or all of
them take over 200 s of processor time, which does not depend on what else the machine does: ten times what the tests take, and
more than that for any one of them. What is known of those that no test kills is in mutation_reasons.toml; only where that says
that the mutant loops does it count as killed.
"""

import argparse
import ast
import contextlib
import difflib
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REASONS = Path(__file__).with_name("mutation_reasons.toml")
TESTS = [
    "tests/theory",
    "tests/test_votes.py",
    "tests/test_certificates.py",
    "src/unswayed/theory",
    "src/unswayed/votes.py",
]
UNCHANGED = "src/unswayed/theory/size.py"
COPIED = ["src", "tests", "benchmarks", "docs", "pyproject.toml"]
NEAREST = {
    "binomial": "bounds",
    "exact": "size",
    "checks": "size",
    "noise": "regions",
    "regions": "size",
    "bounds": "ranking",
}
LONG = ("test_coverage.py", "test_brute_force.py", "test_exact_check.py", "in_1e11", "100000000")
#: `&` and `|` join boolean arrays in these modules, where numpy's `*` and `+` are the same functions; everywhere else `|` joins
#: types or sets, which cannot be added, so that these mutants would be killed by any test.
SAME = {"core/ReplaceBinaryOperator_BitAnd_Mul", "core/ReplaceBinaryOperator_BitOr_Add"}
TEST_SECONDS, ALL_SECONDS = 30, 200  # of processor time, for any one test and for all of them


@dataclass(frozen=True)
class Mutant:
    """One change by one operator; `line` is where it starts."""

    module: str
    operator: str
    occurrence: int
    line: int
    key: str


def modules(root: Path) -> list[Path]:
    return [*sorted((root / "src/unswayed/theory").glob("*.py")), root / "src/unswayed/votes.py"]


def all_mutants(root: Path, seed: int) -> list[Mutant]:
    """Every mutation cosmic-ray knows, in the seed's order."""
    from cosmic_ray.commands.init import init
    from cosmic_ray.work_db import WorkDB

    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(WorkDB(f"{folder}/work.sqlite", WorkDB.Mode.create)) as work,
    ):
        init(modules(root), work, {})
        found = [spec for item in work.work_items for spec in item.mutations]
    found.sort(key=lambda spec: (spec.module_path, spec.operator_name, spec.occurrence))
    texts = {path: path.read_text().splitlines() for path in modules(root)}
    seen: Counter[tuple[str, str, str, int]] = Counter()
    mutants = []
    for spec in found:
        line, column = spec.start_pos
        text = texts[spec.module_path][line - 1]
        module = str(spec.module_path.relative_to(root))
        place = (module, spec.operator_name, text.strip(), column - len(text) + len(text.lstrip()))
        key = hashlib.sha256(repr((seed, *place, seen[place])).encode()).hexdigest()[:16]
        seen[place] += 1
        mutants.append(Mutant(module, spec.operator_name, spec.occurrence, line, key))
    return sorted(mutants, key=lambda mutant: mutant.key)


def mutated(root: Path, mutant: Mutant) -> str | None:
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    text = (root / mutant.module).read_text()
    return mutate_code(text, get_operator(mutant.operator)(), mutant.occurrence)


class Bare(ast.NodeTransformer):
    """Drops annotations."""

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_AnnAssign(self, node):
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.generic_visit(node)


@lru_cache(maxsize=64)
def bare(text: str) -> str:
    return ast.dump(Bare().visit(ast.parse(text)))


def trivial(root: Path, mutant: Mutant) -> bool:
    """Whether testing it says nothing of the tests; nearly all of these would count as killed if they were tested.

    Text that is not Python, and `int + None` in an annotation, end the import whatever the tests are; where an annotation
    still evaluates, or only the layout of the text changed, or the operators are the same function, the program is the same.
    """
    text = mutated(root, mutant)
    try:
        return (
            mutant.operator in SAME or text is None or bare((root / mutant.module).read_text()) == bare(text)
        )
    except SyntaxError:
        return True


def phases(root: Path, module: str) -> list[list[str]]:
    """The module's own tests, and then all others: most mutants die before the others are even collected."""
    name = Path(module).stem
    names = [
        f"{folder}/test_{near}.py"
        for near in (name, NEAREST.get(name))
        for folder in ("tests/theory", "tests")
    ]
    near = [path for path in names if (root / path).exists()]
    others = TESTS[1:] if name == "votes" else TESTS  # the theory imports no votes
    return [near, [*others, *(f"--ignore={path}" for path in near)]]


class Plugin:
    """Stops a test that uses too much processor time, and puts the long ones last."""

    def pytest_collection_modifyitems(self, items) -> None:
        items.sort(key=lambda item: sum(part in item.nodeid for part in LONG))

    def pytest_runtest_logstart(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, TEST_SECONDS)


def run_tests(root: Path, tests: list[str]) -> int:
    os.chdir(root)
    sys.path.insert(0, str(root / "src"))
    sys.dont_write_bytecode = True
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    signal.setitimer(signal.ITIMER_PROF, TEST_SECONDS)  # importing and collecting, too
    resource.setrlimit(resource.RLIMIT_CPU, (ALL_SECONDS, ALL_SECONDS + 1))
    import pytest

    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    ignore = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    try:
        return int(pytest.main([*options, *ignore, *tests], plugins=[Plugin()]))
    except BaseException:
        return 99


def verdict(root: Path, module: str, code: str) -> str:
    """killed, endless or survived."""
    path = root / module
    original = path.read_text()
    path.write_text(code)
    try:
        for tests in phases(root, module):
            child = os.fork()
            if child == 0:
                os._exit(run_tests(root, tests))
            end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if end in (-signal.SIGPROF, -signal.SIGXCPU):
                return "endless"
            if end != 0:
                return "killed"
    finally:
        path.write_text(original)
    return "survived"


def preload() -> None:
    """What every test run imports, except the package under test."""
    import flint  # noqa: F401
    import hypothesis  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import scipy.special
    import scipy.stats  # noqa: F401


def copy_to(folder: Path) -> Path:
    ignore = shutil.ignore_patterns("__pycache__", "_build", "results")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignore)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def work(source: Path, mutants: list[Mutant], results) -> None:
    preload()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(shutil.copytree(source, Path(folder) / "copy"))
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(Path(folder) / "hypothesis")
        begin = time.perf_counter()
        if verdict(root, UNCHANGED, (root / UNCHANGED).read_text()) != "survived":
            results.put((None, "the tests fail without any mutation", 0.0))
            return
        print(f"without a mutation the tests take {time.perf_counter() - begin:.0f} s", flush=True)
        for mutant in mutants:
            begin = time.perf_counter()
            end = verdict(root, mutant.module, mutated(root, mutant))
            results.put((mutant, end, time.perf_counter() - begin))


def change(root: Path, mutant: Mutant) -> tuple[str, str]:
    """The changed lines before and after, without indentation."""
    before, after = (root / mutant.module).read_text(), mutated(root, mutant)
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    return tuple(" ".join(line[2:].strip() for line in lines if line[0] == mark) for mark in "-+")


def digest(root: Path) -> str:
    """Names the code and the tests together: verdicts of others do not count."""
    files = [
        *modules(root),
        root / "src/unswayed/certificates.py",
        *sorted((root / "tests/theory").glob("*.py")),
    ]
    files += [root / "tests/test_votes.py", root / "tests/test_certificates.py"]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:16]


def sample(root: Path, seed: int, size: int) -> tuple[list[Mutant], int, int]:
    """The first `size` mutants that say something, how many there are in all, and how many were passed over."""
    everything = all_mutants(root, seed)
    chosen: list[Mutant] = []
    for passed, mutant in enumerate(everything):
        if len(chosen) == size:
            return chosen, len(everything), passed - size
        if not trivial(root, mutant):
            chosen.append(mutant)
    return chosen, len(everything), len(everything) - len(chosen)


def test_all(root: Path, mutants: list[Mutant], workers: int):
    """(mutant, verdict, seconds) as they come."""
    results: multiprocessing.Queue = multiprocessing.Queue()
    parts = [mutants[i::workers] for i in range(workers)]
    processes = [multiprocessing.Process(target=work, args=(root, part, results)) for part in parts if part]
    for process in processes:
        process.start()
    for _ in mutants:
        mutant, end, seconds = results.get()
        if mutant is None:
            raise SystemExit(end)
        yield mutant, end, seconds
    for process in processes:
        process.join()


def summary(root: Path, mutants: list[Mutant], ends: dict[str, str]) -> dict:
    """Counts, and every mutant that was not killed with what is known of it."""
    known = {(r["was"], r["now"]): r for r in tomllib.loads(REASONS.read_text()).get("mutant", [])}
    left = []
    for mutant in mutants:
        if ends[mutant.key] != "killed":
            was, now = change(root, mutant)
            about = known.get((was, now), {"kind": "unexplained", "why": ""})
            place = {"module": mutant.module, "line": mutant.line, "operator": mutant.operator}
            left.append(
                {
                    **place,
                    "was": was,
                    "now": now,
                    "end": ends[mutant.key],
                    "kind": about["kind"],
                    "why": about["why"],
                }
            )
    counts = Counter(ends[mutant.key] for mutant in mutants)
    caught = counts["killed"] + sum(each["kind"] == "loops" for each in left)
    kinds = Counter(each["kind"] for each in left)
    per_module = {
        name: dict(Counter(ends[mutant.key] for mutant in mutants if mutant.module == name))
        for name in sorted({mutant.module for mutant in mutants})
    }
    return {
        "tested": len(mutants),
        "ends": dict(counts),
        "not_killed": dict(kinds),
        "killed_share": round(caught / len(mutants), 4),
        "killed_share_without_equivalent": round(caught / (len(mutants) - kinds["equivalent"]), 4),
        "modules": per_module,
        "mutants_not_killed": left,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--journal", type=Path, help="verdicts, kept as they come and read again")
    parser.add_argument("--survivors", action="store_true", help="only those that an earlier run left alive")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    journal = given.journal.read_text().splitlines() if given.journal and given.journal.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        root = copy_to(Path(folder))
        state = digest(root)
        mutants, population, passed = sample(root, given.seed, given.mutants)
        said = [json.loads(line) for line in journal]
        if given.survivors:
            killed = {each["key"] for each in said if each["end"] == "killed"}
            alive = {each["key"] for each in said} - killed
            mutants = [mutant for mutant in mutants if mutant.key in alive]
        ends = {each["key"]: each["end"] for each in said if each["state"] == state}
        todo = [mutant for mutant in mutants if mutant.key not in ends]
        print(f"{population} mutants, {len(mutants)} in the sample, {len(todo)} to test", flush=True)
        for mutant, end, seconds in test_all(root, todo, given.workers):
            ends[mutant.key] = end
            if given.journal:
                with given.journal.open("a") as file:
                    about = {"state": state, "end": end, "seconds": round(seconds, 1)}
                    file.write(json.dumps(asdict(mutant) | about) + "\n")
            if end != "killed":
                was, now = change(root, mutant)
                print(
                    f"{end}: {mutant.module}:{mutant.line} {mutant.operator}\n  - {was}\n  + {now}",
                    flush=True,
                )
        about = {"seed": given.seed, "population": population, "passed_over": passed, "state": state}
        found = about | summary(root, mutants, ends)
    print(json.dumps({key: found[key] for key in list(found)[:-1]}, indent=1))
    if given.out:
        given.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
