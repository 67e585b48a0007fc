"""`unswayed data`: what benchmarks there are, fetching them, and checking that they are the right ones."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from unswayed.cli.common import note
from unswayed.errors import InputError, UnswayedError, WorldError

if TYPE_CHECKING:
    from unswayed.datasets.catalog import Entry

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="List, fetch and check the benchmark datasets.",
    epilog="Examples: [bold]unswayed data list[/bold], [bold]unswayed data fetch cora mutag[/bold]",
)

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Names = Annotated[list[str] | None, typer.Argument(help="Datasets; all where none is named.")]


@app.command("list")
def list_datasets(as_json: Json = False) -> None:
    """Say which datasets there are, their statistics, and where each lies on this machine."""
    from unswayed.datasets.catalog import ENTRIES
    from unswayed.datasets.sources import find

    rows = []
    for entry in ENTRIES.values():
        where, problem = None, None
        try:
            found = find(entry)
            where = None if found is None else str(found[0])
        except UnswayedError as error:  # a damaged file of one must not hide the others
            problem = str(error)
        rows.append(
            {
                "dataset": entry.name,
                "task": entry.task,
                "graphs": entry.graphs,
                "nodes": entry.nodes,
                "edges": entry.edges,
                "features": entry.features,
                "classes": entry.classes,
                "place": where,
                "problem": problem,
            }
        )
    if as_json:
        print(json.dumps({"rows": rows}))
        return
    line = "{dataset:<13} {task:<6} {graphs:>6} {nodes:>7} {edges:>7} {features:>9} {classes:>8}  {place}"
    print(line.format(**{name: name for name in rows[0]}))
    for row in rows:
        absent = row["problem"] or f"not here: unswayed data fetch {row['dataset']}"
        print(line.format(**{**row, "place": row["place"] or absent}))


@app.command()
def fetch(names: Names = None, as_json: Json = False) -> None:
    """Fetch what is not on this machine yet, verified, into the user's cache; one that fails does not stop the others."""
    from unswayed.cli.inputs import KARATE
    from unswayed.datasets.catalog import NAMES, entry
    from unswayed.datasets.sources import locate

    places, failed = {}, []
    if KARATE in (names or ()):
        note(f"{KARATE} needs no download: it comes with torch_geometric.")
    asked = [entry(name, KARATE) for name in names or NAMES if name != KARATE]
    for about in asked:
        try:
            places[about.name] = str(locate(about, fetch=True)[0])
        except UnswayedError as error:
            if len(asked) == 1:
                raise
            failed.append(about.name)
            note(str(error))
            continue
        if not as_json:
            print(f"{about.name}: {places[about.name]}")
    if as_json:
        print(json.dumps(places))
    if failed:
        raise WorldError(f"Of {len(asked)} datasets these could not be fetched: {', '.join(failed)}.")


@app.command()
def verify(names: Names = None, as_json: Json = False) -> None:
    """Compare every file with the sha256 shipped with the package, and count nodes, edges and classes.

    Without names: every dataset that lies on this machine.
    """
    from unswayed.datasets.catalog import ENTRIES, entry
    from unswayed.datasets.sources import find

    asked = [entry(name) for name in names or ENTRIES]
    here = asked if names else [about for about in asked if find(about) is not None]
    for about in here:
        _check_counts(about)
        if not as_json:
            print(f"{about.name}: sha256 and counts are right")
    if as_json:
        print(json.dumps({"right": [about.name for about in here]}))
    elif absent := [about.name for about in asked if about not in here]:
        note(f"Not on this machine: {', '.join(absent)}.")


def _check_counts(about: "Entry") -> None:
    from unswayed.datasets import load

    dataset = load(about.name)
    graphs = dataset.graphs or (dataset.graph,)
    counted = (len(graphs), sum(g.num_nodes for g in graphs), sum(g.num_edges for g in graphs) // 2)
    found = (*counted, dataset.num_features, len(set(dataset.labels.tolist())))
    if found != (about.graphs, about.nodes, about.edges, about.features, about.classes):
        raise InputError(
            f"{about.name} has {found} graphs, nodes, edges, features and classes, which is not what was published."
        )
