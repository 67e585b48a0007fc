"""Mutation testing: change the theory or the votes a little, and see whether the fast tests notice.

    python benchmarks/mutation.py --mutants 500 --seed 0 --workers 2

Mutants come from cosmic-ray's operators; a seeded sample of them is tested, each in a copy of the repository (the working tree
is never touched). Tests run in a process forked from one that has already imported numpy, scipy, hypothesis and pytest. A
mutant that the tests pass is a survivor and is printed as a diff.
"""

import argparse
import contextlib
import difflib
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULES = [*sorted((ROOT / "src/unswayed/theory").glob("*.py")), ROOT / "src/unswayed/votes.py"]
TESTS = [
    "tests/theory",
    "tests/test_votes.py",
    "tests/test_certificates.py",
    "src/unswayed/theory",
    "src/unswayed/votes.py",
]
SLOW = "not 100000000 and not 1000000 and not large_sizes and not guarantee_page"  # over a second, or about words
COPIED = ["src", "tests", "benchmarks", "docs", "pyproject.toml"]


def all_mutants() -> list[tuple[str, str, int]]:
    """(module, operator, occurrence) of every mutation cosmic-ray knows."""
    from cosmic_ray.commands.init import init
    from cosmic_ray.work_db import WorkDB

    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(WorkDB(f"{folder}/work.sqlite", WorkDB.Mode.create)) as work,
    ):
        init(MODULES, work, {})
        found = [spec for item in work.work_items for spec in item.mutations]
    return sorted(
        (str(Path(spec.module_path).relative_to(ROOT)), spec.operator_name, spec.occurrence) for spec in found
    )


def mutated(module: str, operator: str, occurrence: int) -> str | None:
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    return mutate_code((ROOT / module).read_text(), get_operator(operator)(), occurrence)


def trivial(module: str, mutant: str) -> bool:
    """Whether only annotations or formatting differ, which no test can see, or it is no Python, which any test sees."""
    import ast

    class Bare(ast.NodeTransformer):
        def visit_arg(self, node):
            node.annotation = None
            return node

        def visit_AnnAssign(self, node):
            node.annotation = ast.Constant(None)
            return self.generic_visit(node)

        def visit_FunctionDef(self, node):
            node.returns = None
            return self.generic_visit(node)

    def bare(text: str) -> str:
        return ast.dump(Bare().visit(ast.parse(text)))

    try:
        return bare((ROOT / module).read_text()) == bare(mutant)
    except SyntaxError:
        return True


def order(module: str) -> list[str]:
    """The tests of the mutated module first, so that most mutants die at once."""
    name = Path(module).stem
    near = {"binomial": "bounds", "checks": "size", "exact": "exact_check"}.get(name, name)
    first = [
        path for path in (f"tests/theory/test_{near}.py", f"tests/test_{near}.py") if (ROOT / path).exists()
    ]
    return [*first, *TESTS]


def verdict(copy: Path, module: str, code: str, timeout: float) -> str:
    """killed, survived or timeout (killed too: the tests would hang)."""
    path = copy / module
    original = path.read_text()
    path.write_text(code)
    child = os.fork()
    if child == 0:
        code = _run_tests(copy, module)
        sys.stdout.flush()
        os._exit(code)
    deadline = time.monotonic() + timeout
    try:
        while time.monotonic() < deadline:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return "survived" if os.waitstatus_to_exitcode(status) == 0 else "killed"
            time.sleep(0.02)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "timeout"
    finally:
        path.write_text(original)


def _run_tests(copy: Path, module: str) -> int:
    os.setsid()
    os.chdir(copy)
    sys.path.insert(0, str(copy / "src"))
    sys.dont_write_bytecode = True
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    import pytest

    try:
        return int(
            pytest.main(
                [
                    "-x",
                    "-q",
                    "-k",
                    SLOW,
                    "-p",
                    "no:cacheprovider",
                    "-W",
                    "ignore::pytest.PytestAssertRewriteWarning",
                    *order(module),
                ]
            )
        )
    except BaseException:
        return 99


def preload() -> None:
    """What every test run imports, except the package under test."""
    import flint  # noqa: F401
    import hypothesis  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import scipy.special
    import scipy.stats  # noqa: F401


def work(mutants: list[tuple[str, str, int]], timeout: float, results) -> None:
    preload()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        ignore = shutil.ignore_patterns("__pycache__", "_build", "results")
        for name in COPIED:
            source = ROOT / name
            (
                shutil.copytree(source, copy / name, ignore=ignore)
                if source.is_dir()
                else shutil.copy(source, copy / name)
            )
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(Path(folder) / "hypothesis")
        sound = (ROOT / "src/unswayed/votes.py").read_text()
        if verdict(copy, "src/unswayed/votes.py", sound, 10 * timeout) != "survived":
            raise SystemExit("the tests fail without any mutation")
        for mutant in mutants:
            code = mutated(*mutant)
            if code is None or trivial(mutant[0], code):
                results.put((mutant, "trivial", ""))
                continue
            end = verdict(copy, mutant[0], code, timeout)
            shown = ""
            if end == "survived":
                lines = difflib.unified_diff(
                    (ROOT / mutant[0]).read_text().splitlines(), code.splitlines(), lineterm="", n=1
                )
                shown = "\n".join(lines)
            results.put((mutant, end, shown))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=180)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    everything = all_mutants()
    chosen = random.Random(given.seed).sample(everything, len(everything))
    kept: list[tuple[str, str, int]] = []
    for mutant in (
        chosen
    ):  # annotations cannot be seen by any test, so they are replaced by other mutants of the sample
        if len(kept) == given.mutants:
            break
        code = mutated(*mutant)
        if code is not None and not trivial(mutant[0], code):
            kept.append(mutant)
    print(f"{len(everything)} mutants in all, {len(kept)} tested", flush=True)
    results: multiprocessing.Queue = multiprocessing.Queue()
    parts = [kept[i :: given.workers] for i in range(given.workers)]
    workers = [multiprocessing.Process(target=work, args=(part, given.timeout, results)) for part in parts]
    for worker in workers:
        worker.start()
    ends: dict[str, int] = {}
    survivors = []
    begin = time.time()
    for number in range(len(kept)):
        mutant, end, shown = results.get()
        ends[end] = ends.get(end, 0) + 1
        if end == "survived":
            survivors.append({"mutant": mutant, "diff": shown})
            print(f"survived: {mutant}\n{shown}", flush=True)
        if number % 50 == 49:
            print(f"{number + 1} tested, {ends}, {time.time() - begin:.0f} s", flush=True)
    for worker in workers:
        worker.join()
    killed = ends.get("killed", 0) + ends.get("timeout", 0)
    summary = {
        "mutants": len(kept),
        "ends": ends,
        "killed_share": round(killed / max(len(kept), 1), 4),
        "seconds": round(time.time() - begin),
    }
    print(json.dumps(summary))
    if given.out:
        given.out.write_text(json.dumps({**summary, "survivors": survivors}, indent=1))


if __name__ == "__main__":
    main()
