"""What benchmarks/checks/mutation.py found: counts, those that no test killed with what is known of them, and the page."""

import tomllib
from collections import Counter
from pathlib import Path

from benchmarks.checks.mutation_mutants import Mutant, change

REASONS = Path(__file__).with_name("mutation_reasons.toml")


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


def page(found: dict, commit: str, only: list[str], rows: str) -> str:
    """The record in words."""
    ends, kinds = found["ends"], found["not_killed"]
    those = f" --only {' '.join(only)}" if only else ""
    where = "these files of `theory/`" if only else "`theory/` and `votes.py`"
    tests = "the tests of the file that was changed" if only else "the fast tests"
    lines = [
        f"# Would the tests notice{' (newer files)' if only else ''}?\n",
        f"`python -m benchmarks.checks.mutation --mutants {found['tested']} --seed {found['seed']}{those}` at commit {commit}: of the "
        f"{found['population']:,} ways in which cosmic-ray would change one operator, number, comparison or keyword of {where}, "
        f"{found['tested']} drawn by the seed were tried against {tests}, one at a time. "
        f"{found['passed_over']} drawn before them were passed over, because they change annotations or layout only, are no "
        "Python, or exchange `&` for `*` or `|` for `+` between truth values. Rows: "
        f"[benchmarks/{rows}](benchmarks/{rows}).\n",
        f"Tests failed for {ends['killed']}, and {kinds.get('loops', 0)} make a loop that never ends: {found['killed_share']:.1%} "
        f"noticed. Of the others, {kinds.get('hangs', 0)} begin a computation that no machine finishes (not counted), "
        f"{kinds.get('equivalent', 0)} change no answer, {kinds.get('cautious', 0)} change how much is granted to rounding, or how "
        f"soon a search stops, within what is proved, and {kinds.get('untested', 0)} could be tested and is not.\n",
        "| module | killed | endless | survived |\n|---|---|---|---|",
    ]
    for name, counts in found["modules"].items():
        row = " | ".join(str(counts.get(end, 0)) for end in ("killed", "endless", "survived"))
        lines.append(f"| `{name.removeprefix('src/unswayed/')}` | {row} |")
    lines.append("\n## Those that no test killed\n")
    for each in found["mutants_not_killed"]:
        place = f"{each['module'].removeprefix('src/unswayed/')}:{each['line']}"
        lines.append(f"- `{place}`, {each['end']}, {each['kind']}: {each['why']}\n")
        lines.append(f"  ```diff\n  - {each['was']}\n  + {each['now']}\n  ```\n")
    return "\n".join(lines)
