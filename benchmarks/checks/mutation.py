"""Mutation testing: change the theory or the votes a little, and see whether the fast tests notice.

    python -m benchmarks.checks.mutation --mutants 500 --seed 0 --journal mutation.jsonl \\
        --out docs/results/benchmarks/mutation.json --page docs/results/mutation.md

Mutants come from cosmic-ray's operators, all of them. Each is ranked by a hash of the seed, its operator and the line it
changes, and the first 500 are tested: the sample is fixed by the seed alone, and a line that is edited changes only its own
mutants' places. Everything happens in a copy of the repository; tests run in a process forked from one that has already imported
numpy, scipy, hypothesis and pytest. Verdicts go to the journal at once, so a run that was stopped goes on where it was.

A mutant is *killed* when a test fails, and *survived* when all tests pass. It is *endless* when one test takes over 30 s or all of
them take over 200 s of processor time, which does not depend on what else the machine does: ten times what the tests take, and
more than that for any one of them (15 s and 75 s with `--only`, whose tests are fewer). What is known of those that no test kills is in mutation_reasons.toml; only where that says
that the mutant loops does it count as killed.

With `--only ballots hashed` the mutants are those of these modules alone, and so are the tests.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.checks.mutation_mutants import Mutant, change, modules, mutated, sample
from benchmarks.checks.mutation_page import page, summary

ROOT = Path(__file__).resolve().parents[2]
TESTS = [
    "tests/theory",
    "tests/test_votes.py",
    "tests/certificates/test_smoothed.py",
    "src/unswayed/theory",
    "src/unswayed/votes.py",
]
UNCHANGED = "src/unswayed/theory/size.py"
COPIED = ["src", "tests", "benchmarks", "docs", "pyproject.toml"]
NEAREST = {
    "binomial": "bounds",
    "entrywise": "size",
    "exact": "size",
    "law": "size",
    "checks": "size",
    "noise": "regions",
    "regions": "size",
    "bounds": "ranking",
    "ballots": "electorate",
    "duels": "electorate",
    "hiding": "visibility",
    "keep": "noise",
    "hide": "noise",
    "mask": "noise",
}
LONG = ("test_coverage.py", "test_brute_force.py", "test_exact_check.py", "in_1e11", "100000000")
# of processor time, for any one test and for all of them; a module's own alone
SECONDS = {
    False: (30, 200),
    True: (15, 75),
}
MEMORY = 3 * 2**30  # bytes that a run of the tests may address


def phases(root: Path, module: str, alone: bool) -> list[list[str]]:
    """The module's own tests, and then, unless `alone`, all others: most mutants die before the others are even collected."""
    name = Path(module).stem
    names = [
        f"{folder}/test_{near}.py"
        for near in (name, NEAREST.get(name))
        for folder in ("tests/theory", "tests")
    ]
    near = [path for path in names if (root / path).exists()]
    if alone:
        return [[path, module] for path in near]
    others = TESTS[1:] if name == "votes" else TESTS  # the theory imports no votes
    return [near, [*others, *(f"--ignore={path}" for path in near)]]


class Plugin:
    """Stops a test that uses too much processor time, and puts the long ones last."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def pytest_collection_modifyitems(self, items) -> None:
        items.sort(key=lambda item: sum(part in item.nodeid for part in LONG))

    def pytest_runtest_logstart(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, self.seconds)


def run_tests(root: Path, tests: list[str], alone: bool) -> int:
    for_one, for_all = SECONDS[alone]
    os.chdir(root)
    sys.path.insert(0, str(root / "src"))
    sys.dont_write_bytecode = True
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    signal.setitimer(signal.ITIMER_PROF, for_one)  # importing and collecting, too
    resource.setrlimit(resource.RLIMIT_CPU, (for_all, for_all + 1))
    # a mutant must not take it all: its test fails instead
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import pytest

    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    ignore = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    try:
        return int(pytest.main([*options, *ignore, *tests], plugins=[Plugin(for_one)]))
    except BaseException:
        return 99


def verdict(root: Path, module: str, code: str, alone: bool = False) -> str:
    """killed, endless or survived."""
    path = root / module
    original = path.read_text()
    path.write_text(code)
    try:
        for tests in phases(root, module, alone):
            child = os.fork()
            if child == 0:
                os._exit(run_tests(root, tests, alone))
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


def work(source: Path, mutants: list[Mutant], results, alone: bool) -> None:
    preload()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(shutil.copytree(source, Path(folder) / "copy"))
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(Path(folder) / "hypothesis")
        begin = time.perf_counter()
        unchanged = mutants[0].module if alone else UNCHANGED
        if verdict(root, unchanged, (root / unchanged).read_text(), alone) != "survived":
            results.put((None, "the tests fail without any mutation", 0.0))
            return
        print(f"without a mutation the tests take {time.perf_counter() - begin:.0f} s", flush=True)
        for mutant in mutants:
            begin = time.perf_counter()
            end = verdict(root, mutant.module, mutated(root, mutant), alone)
            results.put((mutant, end, time.perf_counter() - begin))


def digest(files: list[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:16]


def state(root: Path, module: str, alone: bool) -> dict[str, str]:
    """Names the code and the tests: verdicts on others do not count. `alone`: the module's own code and tests are all there is."""
    if alone:
        paths = [root / part for phase in phases(root, module, True) for part in phase]
        return {"code": digest([root / module]), "tests": digest([p for p in paths if p != root / module])}
    code = [*modules(root), root / "src/unswayed/certificates/smoothed.py"]
    tests = [*sorted((root / "tests/theory").glob("*.py")), *(root / path for path in TESTS[1:3])]
    return {"code": digest(code), "tests": digest(tests)}


def test_all(root: Path, mutants: list[Mutant], workers: int, alone: bool):
    """(mutant, verdict, seconds) as they come."""
    results: multiprocessing.Queue = multiprocessing.Queue()
    parts = [mutants[i::workers] for i in range(workers)]
    processes = [
        multiprocessing.Process(target=work, args=(root, part, results, alone)) for part in parts if part
    ]
    for process in processes:
        process.start()
    for _ in mutants:
        mutant, end, seconds = results.get()
        if mutant is None:
            raise SystemExit(end)
        yield mutant, end, seconds
    for process in processes:
        process.join()


def remembered(journal: Path | None, states: dict[str, dict[str, str]], added: bool) -> dict[str, str]:
    """Verdicts on this code by these tests; where tests have only been added since, those of fewer tests but for survivors."""
    ends = {}
    for line in journal.read_text().splitlines() if journal and journal.exists() else []:
        each = json.loads(line)
        now = states.get(each["module"], {"code": "", "tests": ""})
        same = each["tests"] == now["tests"] or (added and each["end"] != "survived")
        if each["code"] == now["code"] and same:
            ends[each["key"]] = each["end"]
    return ends


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--journal", type=Path, help="verdicts, kept as they come and read again")
    parser.add_argument(
        "--added",
        action="store_true",
        help="tests have only been added: what survived before is tried again, all else stays as it was",
    )
    parser.add_argument("--only", nargs="*", default=[], help="modules of theory/ to change, by their names")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--page", type=Path, help="the record as Markdown")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    with tempfile.TemporaryDirectory() as folder:
        root = copy_to(Path(folder))
        mutants, population, passed = sample(root, given.seed, given.mutants, given.only)
        states = {m.module: state(root, m.module, bool(given.only)) for m in mutants}
        ends = remembered(given.journal, states, given.added)
        todo = [mutant for mutant in mutants if mutant.key not in ends]
        print(f"{population} mutants, {len(mutants)} in the sample, {len(todo)} to test", flush=True)
        for mutant, end, seconds in test_all(root, todo, given.workers, bool(given.only)):
            ends[mutant.key] = end
            if given.journal:
                with given.journal.open("a") as file:
                    about = states[mutant.module] | {"end": end, "seconds": round(seconds, 1)}
                    file.write(json.dumps(asdict(mutant) | about) + "\n")
            if end != "killed":
                was, after = change(root, mutant)
                place = f"{mutant.module}:{mutant.line} {mutant.operator}"
                print(f"{end}: {place}\n  - {was}\n  + {after}", flush=True)
        about = {"seed": given.seed, "population": population, "passed_over": passed}
        about |= {"states": states} if given.only else next(iter(states.values()))
        found = about | summary(root, mutants, ends)
    print(json.dumps({key: found[key] for key in list(found)[:-1]}, indent=1))
    if given.out:
        given.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    if given.page:
        commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
        given.page.write_text(
            page(found, commit, given.only, "mutation.json" if given.out is None else given.out.name)
        )


if __name__ == "__main__":
    main()
