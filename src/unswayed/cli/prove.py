"""`unswayed prove`: exact certificates without noise, from a graph and a model made of ballots, in one command."""

from pathlib import Path
from typing import Annotated

import typer

from unswayed.cli import kinds
from unswayed.cli import options as opt
from unswayed.cli.common import check_apart

app = typer.Typer(rich_markup_mode="rich", add_completion=False)

EXAMPLES = """
[bold]Examples[/bold]

  unswayed prove --dataset polblogs --model label-ballots --report proof.html

  unswayed prove --edges E.csv --features X.csv --labels Y.csv --positive fraud --store runs/mine

  unswayed prove --dataset tolokers --model ballots --positive 1 --precision 0.35 --report banned.html

  unswayed prove --dataset amherst41 --model ballots --attack-size 5 --json

  unswayed prove --dataset cora --model hashed:gcn --groups 30
"""
PANEL = "The model"

Model = Annotated[
    str,
    typer.Option(
        help="label-ballots: neighbours vote with known labels, no training. ballots: a network trained from there. "
        "hashed:gcn (or another network): a vote over groups of edges. file.py:factory, your own.",
        rich_help_panel=PANEL,
        autocompletion=lambda: ["label-ballots", "ballots", "hashed:gcn", "hashed:sage"],
    ),
]
Voters = Annotated[
    kinds.VotersKind | None,
    typer.Option(
        help="With --model ballots: what a ballot is made of, the voter's features alone or also the labels around it. "
        "\\[default: two-hop]",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
AttackSize = Annotated[
    int | None,
    typer.Option(
        "--attack-size",
        help="With --model ballots: how many changes training defends against, and up to which proofs count where features say "
        "more than links. \\[default: 5, of which 2 count there]",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
Precision = Annotated[
    float | None,
    typer.Option(
        help="With --model ballots and --positive: flag as many as can be proved to stay so, at no less than this precision on "
        "validation nodes.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
Groups = Annotated[
    int | None,
    typer.Option(
        help="With --model hashed:…: how many groups vote; K is at most half of them. \\[default: 30]",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]


@app.command(epilog=EXAMPLES)
def prove(
    dataset: opt.Dataset = None,
    edges: opt.Edges = None,
    features: opt.Features = None,
    labels: opt.Labels = None,
    nodes: opt.Nodes = "test",
    threat: opt.Threat = None,
    model: Model = "label-ballots",
    voters: Voters = None,
    attack_size: AttackSize = None,
    precision: Precision = None,
    groups: Groups = None,
    protocol: opt.ProtocolOption = kinds.Protocol.TRANSDUCTIVE,
    positive: opt.Positive = None,
    seed: opt.Seed = 0,
    store: Annotated[
        Path | None,
        typer.Option(
            help="A folder that keeps the proofs, for report and explain.", rich_help_panel=opt.COMPUTE
        ),
    ] = None,
    device: opt.Device = "cpu",
    floor: opt.Floor = True,
    report: opt.Report = None,
    csv: opt.Csv = None,
    as_json: opt.Json = False,
) -> None:
    """Prove exactly, without noise or samples, how many changed links each answer of a ballot model withstands."""
    words = dict(locals())
    check_apart([edges, features, labels, model], report, csv)
    from unswayed.cli.certify import present
    from unswayed.cli.proving import prove_words

    certs, record = prove_words(words)
    present(record, certs, report=report, csv=csv, as_json=as_json)
