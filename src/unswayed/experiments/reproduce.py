"""Reproduce a figure: do the work that is missing, then write its rows and its curves.

    python -m unswayed.experiments.reproduce figure1 figure2 --recipe faithful --seeds 5 --runs DIR --device cuda

does the work alone (train and poll), on a machine where neither the command line nor the plots can be installed.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unswayed.errors import InputError
from unswayed.experiments.settings import EXPERIMENTS, RECIPES, SAMPLES, panels, work
from unswayed.ledger import BLOCK

if TYPE_CHECKING:
    from unswayed.experiments.runs import Working

Say = Callable[[str], None]


def named(names: Iterable[str]) -> tuple[str, ...]:
    """The experiments meant by these names, in order; "all" means every one."""
    names = list(names)
    unknown = [name for name in names if name not in (*EXPERIMENTS, "all")]
    if unknown or not names:
        raise InputError(
            f"There is no experiment {unknown[0] if unknown else ''!r}; choose from {', '.join(EXPERIMENTS)}, all, beyond, paying and hiding."
        )
    return tuple(name for name in EXPERIMENTS if name in names or "all" in names)


def prepare(
    names: Iterable[str],
    *,
    recipe: str,
    seeds: int,
    runs: Path,
    device: str = "cpu",
    samples: int = SAMPLES[-1],
    datasets: Collection[str] | None = None,
    seed: int | None = None,
    say: Say = print,
    working: "Working | None" = None,
) -> None:
    """Train and poll whatever these experiments lack; what is stored is never done again.

    `datasets` and `seed` pick a part of the work, so that several processes can share it. `working` is that of `Run`.
    """
    from unswayed.experiments.runs import Run, silent

    if seeds < 1:
        raise InputError("seeds must be 1 or more.")
    if samples < 1 or samples % BLOCK:
        raise InputError(
            f"samples must be a multiple of {BLOCK}, the votes that are stored together, not {samples}."
        )
    experiments = named(names)
    command = _command(experiments, recipe, seeds, samples, device, datasets, seed)
    wanted = work(experiments, recipe, seeds)
    for done, (training, betas) in enumerate(wanted.items()):
        if (datasets is None or training.dataset in datasets) and seed in (None, training.seed):
            say(f"[{done + 1} of {len(wanted)}] {training.key}")
            run = Run(training, runs, device, working or silent)
            run.complete(betas, samples, command=command, say=say)


def _command(
    experiments: tuple[str, ...],
    recipe: str,
    seeds: int,
    samples: int,
    device: str,
    datasets: Collection[str] | None,
    seed: int | None,
) -> str:
    """The command that does this work again; what it would do anyway is left out."""
    part = datasets is not None or seed is not None
    words = ["python -m unswayed.experiments.reproduce" if part else "unswayed reproduce", *experiments]
    words += ["--recipe", recipe, "--seeds", str(seeds)]
    words += ["--samples", str(samples)] if samples != SAMPLES[-1] else []
    words += ["--device", device] if device != "cpu" else []
    words += ["--datasets", *sorted(datasets)] if datasets is not None else []
    words += ["--seed", str(seed)] if seed is not None else []
    return " ".join(words)


def publish(
    names: Iterable[str],
    *,
    recipe: str,
    seeds: int,
    runs: Path,
    out: Path,
    samples: int = SAMPLES[-1],
    say: Say = print,
) -> list[Path]:
    """Write the rows (JSON) and curves (PNG, SVG) of these experiments from what is stored; return what was written."""
    from unswayed.experiments.figures import draw
    from unswayed.experiments.rows import rows_of, write_rows
    from unswayed.experiments.runs import Run
    from unswayed.experiments.table1 import write_table

    written = []
    for experiment in named(names):
        if experiment == "table1":
            written.append(write_table(out / "table1.json"))
            continue
        by_panel: dict[Any, list[Any]] = defaultdict(list)
        for panel in panels(experiment, recipe):
            for seed in range(seeds):
                run = Run(panel.training(seed), runs)
                done = [beta for beta in panel.betas if run.polled((beta,), samples)]
                by_panel[panel] += rows_of(panel, run, samples, done)
                if missing := [f"{beta:g}" for beta in panel.betas if beta not in done]:
                    say(
                        f"{experiment}: {run.training.key} has no votes for β = {', '.join(missing)}, left out."
                    )
        by_panel = {panel: rows for panel, rows in by_panel.items() if rows}
        if not by_panel:
            continue
        path = out / f"{experiment}-{recipe}.json"
        write_rows(path, [row for rows in by_panel.values() for row in rows])
        written += [path, *draw(by_panel, out / f"{experiment}-{recipe}")]
        say(f"{experiment}: {path}")
    return written


def main(argv: list[str] | None = None) -> None:
    """Do the work of some experiments; no certificate, no plot."""
    parser = argparse.ArgumentParser(
        prog="python -m unswayed.experiments.reproduce", description=main.__doc__
    )
    parser.add_argument("experiments", nargs="+", help=f"{', '.join(EXPERIMENTS)} or all")
    parser.add_argument("--recipe", choices=RECIPES, default="faithful")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--samples", type=int, default=SAMPLES[-1])
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--datasets", nargs="*", default=None, help="only these")
    parser.add_argument("--seed", type=int, default=None, help="only this one of the seeds")
    options = parser.parse_args(argv)
    prepare(
        options.experiments,
        recipe=options.recipe,
        seeds=options.seeds,
        runs=options.runs,
        device=options.device,
        samples=options.samples,
        datasets=options.datasets,
        seed=options.seed,
        say=lambda words: print(words, flush=True),
    )


if __name__ == "__main__":
    main()
