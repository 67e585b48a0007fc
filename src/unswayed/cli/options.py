"""The options that several commands share, each declared once."""

from pathlib import Path
from typing import Annotated

import typer

from unswayed.cli.common import beside, present
from unswayed.cli.kinds import BoundsKind, EngineKind, Protocol, Recipe, RivalsKind, RunnerKind, ThreatKind

DATA, MODEL, NOISE, COMPUTE, OUTPUT = (
    "What to certify",
    "The model",
    "Noise and confidence",
    "Where and how",
    "Output",
)
MODELS = "gcn, gcn-mean, gat, gin, sage or mlp"

Dataset = Annotated[
    str | None,
    typer.Option(
        help="A benchmark: cora, citeseer, pubmed, mutag, proteins, imdb-multi; or karate, a small graph that needs no download.",
        rich_help_panel=DATA,
        autocompletion=lambda: ["cora", "citeseer", "pubmed", "mutag", "proteins", "imdb-multi", "karate"],
    ),
]
Edges = Annotated[
    Path | None,
    typer.Option(
        help="Your edges: a CSV with columns source,target.", rich_help_panel=DATA, callback=present
    ),
]
Features = Annotated[
    Path | None,
    typer.Option(
        help="Your features: a CSV with a node column, then numbers.", rich_help_panel=DATA, callback=present
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        help="Your labels: a CSV with columns node,label[,split]; split is train, val or test.",
        rich_help_panel=DATA,
        callback=present,
    ),
]
Nodes = Annotated[
    str,
    typer.Option(
        "--nodes",
        "--targets",
        help="Which nodes (or graphs) to certify: test, val, all, unlabelled (those whose label is not known), or names or numbers such as 3,17,42 (a node called test: test,).",
        rich_help_panel=DATA,
    ),
]
Threat = Annotated[
    ThreatKind | None,
    typer.Option(
        help="row: the attacker rewires the target's own links. all-pairs: any edge of the graph. inject: fake nodes with any features (with --hide). \\[default: row for nodes, all-pairs for graphs]",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Directed = Annotated[
    bool,
    typer.Option(
        "--directed",
        help="Edges go from source to target: an attacker changes those into a node, or with --threat all-pairs any.",
        rich_help_panel=DATA,
    ),
]
EdgeAttr = Annotated[
    str | None,
    typer.Option(
        "--edge-attr",
        help="file.py:function of two tensors of node numbers (and x, if it asks): the weight or attributes of any edge, for a model that reads them.",
        rich_help_panel=DATA,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help=f"{MODELS}; or file.py:factory, a function that returns your torch module. \\[default: gcn-mean for nodes, gin for graphs]",
        rich_help_panel=MODEL,
        show_default=False,
        autocompletion=lambda: ["gcn", "gcn-mean", "gat", "gin", "sage", "mlp"],
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option(
        help="Weights for the model, as a safetensors file; without it a built-in model is trained.",
        rich_help_panel=MODEL,
        callback=present,
    ),
]
RecipeOption = Annotated[
    Recipe,
    typer.Option(
        "--recipe",
        help="How the model is trained: on the clean graph, under noise, or distilled under noise (the last two train a factory's module too).",
        rich_help_panel=MODEL,
    ),
]
ProtocolOption = Annotated[
    Protocol,
    typer.Option(
        "--protocol", help="Whether training sees the test nodes' features and edges.", rich_help_panel=MODEL
    ),
]
Beta = Annotated[
    float | None,
    typer.Option(
        help="Probability that an entry keeps its value. \\[default: 0.7]",
        show_default=False,
        rich_help_panel=NOISE,
    ),
]
PAdd = Annotated[
    float | None,
    typer.Option(
        "--p-add", help="Asymmetric noise: probability that a missing edge appears.", rich_help_panel=NOISE
    ),
]
PDelete = Annotated[
    float | None,
    typer.Option(
        "--p-delete", help="Asymmetric noise: probability that an edge vanishes.", rich_help_panel=NOISE
    ),
]
Keep = Annotated[
    str | None,
    typer.Option(
        "--keep",
        help="Noise that only hides: so many of a node's seats are kept, as 5/50 (rows only).",
        rich_help_panel=NOISE,
    ),
]
Hide = Annotated[
    str | None,
    typer.Option(
        "--hide",
        help="Noise against fake nodes: nodes hidden and edges lost with these probabilities, as 0.9/0.5 (--threat inject).",
        rich_help_panel=NOISE,
    ),
]
Links = Annotated[
    int | None,
    typer.Option(
        "--links",
        help="The most links that a fake node may have (--threat inject). \\[default: any number]",
        show_default=False,
        rich_help_panel=DATA,
    ),
]
Rivals = Annotated[
    RivalsKind,
    typer.Option(
        "--rivals",
        help="all: the label must beat “no answer” too; labels: it must beat the other labels.",
        rich_help_panel=NOISE,
    ),
]
Samples = Annotated[int, typer.Option(help="Noisy copies drawn for each target.", rich_help_panel=NOISE)]
Alpha = Annotated[
    float,
    typer.Option(help="A certificate may be wrong with at most this probability.", rich_help_panel=NOISE),
]
Bounds = Annotated[
    BoundsKind,
    typer.Option(
        help="strict; tight: sharper, tests the winner first; anytime: valid however often you look; paper: the published rule.",
        rich_help_panel=NOISE,
    ),
]
Family = Annotated[
    bool,
    typer.Option(
        "--family", help="One confidence for all targets together, not for each.", rich_help_panel=NOISE
    ),
]
WantSize = Annotated[
    int | None,
    typer.Option(
        "--want-size",
        min=0,
        help="The K you are after: warns before sampling if these settings cannot reach it.",
        rich_help_panel=NOISE,
    ),
]
UntilSize = Annotated[
    int | None,
    typer.Option(
        "--until-size",
        help="Stop asking about a target once its K is this large or provably cannot be; --samples is then the most that are drawn, and bounds are anytime.",
        rich_help_panel=NOISE,
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--budget",
        help="Stop sampling after this many seconds; what was counted is kept and certified with anytime bounds.",
        rich_help_panel=NOISE,
    ),
]
Top = Annotated[
    int | None,
    typer.Option(
        "--top",
        help="Ask instead how large an attack leaves the most voted label among the so many most probable.",
        rich_help_panel=NOISE,
    ),
]
Shared = Annotated[
    int | None,
    typer.Option(
        "--shared",
        min=0,
        help="Also say how many targets one attacker with so many changes in total could flip (needs --family); with --threat all-pairs and "
        "--p-add 0, how many by deletions alone, from what each node can see.",
        rich_help_panel=NOISE,
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of split, training and noise.", rich_help_panel=COMPUTE)]
Store = Annotated[
    Path | None,
    typer.Option(
        help="A folder that keeps every vote: run the same command again to resume.", rich_help_panel=COMPUTE
    ),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 …", rich_help_panel=COMPUTE)]
Engine = Annotated[
    EngineKind,
    typer.Option(
        help="auto: a fast exact engine where one fits, else the generic one.", rich_help_panel=COMPUTE
    ),
]
Runner = Annotated[RunnerKind, typer.Option(help="serial, or ray: a Ray cluster.", rich_help_panel=COMPUTE)]
Address = Annotated[
    str | None,
    typer.Option(
        help="With --runner ray: local, auto, host:port or ray://host:port.", rich_help_panel=COMPUTE
    ),
]
BatchSize = Annotated[
    int | None, typer.Option("--batch-size", help="Noisy graphs asked at a time.", rich_help_panel=COMPUTE)
]
Audit = Annotated[
    int,
    typer.Option(
        help="Counted answers that are asked again of the model itself, one graph at a time; 0 for none.",
        rich_help_panel=COMPUTE,
    ),
]
Floor = Annotated[
    bool,
    typer.Option(
        "--floor/--no-floor",
        help="Train the best structure-free model to hold the curve against.",
        rich_help_panel=OUTPUT,
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        help="The label that should stay flagged: shows which share of its nodes does under K changes, and how right flags stay.",
        rich_help_panel=OUTPUT,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        help="For a model of one output: flagged above this (0 for a logit, 0.5 after a sigmoid).",
        rich_help_panel=MODEL,
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(help="Write the HTML report to this file.", rich_help_panel=OUTPUT, callback=beside),
]
Csv = Annotated[
    Path | None,
    typer.Option(
        "--csv",
        help="Write one row for each target to this CSV file.",
        rich_help_panel=OUTPUT,
        callback=beside,
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json", help="One JSON document on stdout, everything else on stderr.", rich_help_panel=OUTPUT
    ),
]
