"""The mutants that benchmarks/checks/mutation.py tests: cosmic-ray's, in an order that a seed fixes."""

import ast
import contextlib
import difflib
import hashlib
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

#: `&` and `|` join boolean arrays in these modules, where numpy's `*` and `+` are the same functions; everywhere else `|` joins
#: types or sets, which cannot be added, so that these mutants would be killed by any test.
SAME = {"core/ReplaceBinaryOperator_BitAnd_Mul", "core/ReplaceBinaryOperator_BitOr_Add"}


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


def all_mutants(root: Path, seed: int, only: Sequence[str] = ()) -> list[Mutant]:
    """Every mutation cosmic-ray knows, or those of some modules alone, in the seed's order."""
    from cosmic_ray.commands.init import init
    from cosmic_ray.work_db import WorkDB

    paths = [path for path in modules(root) if not only or path.stem in only]
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(WorkDB(f"{folder}/work.sqlite", WorkDB.Mode.create)) as work,
    ):
        init(paths, work, {})
        found = [spec for item in work.work_items for spec in item.mutations]
    found.sort(key=lambda spec: (spec.module_path, spec.operator_name, spec.occurrence))
    texts = {path: path.read_text().splitlines() for path in paths}
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


def sample(root: Path, seed: int, size: int, only: Sequence[str] = ()) -> tuple[list[Mutant], int, int]:
    """The first `size` mutants that say something, how many there are in all, and how many were passed over."""
    everything = all_mutants(root, seed, only)
    chosen: list[Mutant] = []
    for passed, mutant in enumerate(everything):
        if len(chosen) == size:
            return chosen, len(everything), passed - size
        if not trivial(root, mutant):
            chosen.append(mutant)
    return chosen, len(everything), len(everything) - len(chosen)


def change(root: Path, mutant: Mutant) -> tuple[str, str]:
    """The changed lines before and after, without indentation."""
    before, after = (root / mutant.module).read_text(), mutated(root, mutant)
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    return tuple(" ".join(line[2:].strip() for line in lines if line[0] == mark) for mark in "-+")
