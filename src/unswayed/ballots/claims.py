"""What a frozen ballot model can be held to under each threat: its exact margins, or a refusal that says what to do instead.

One function a kind of threat, found by the threat's own `kind`; another threat adds its function to `CLAIMS`.
"""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from unswayed.ballots.device import sizes_on
from unswayed.ballots.fixed import SCALE, hash_of, hash_of_names
from unswayed.ballots.links import Links
from unswayed.ballots.tables import HASHES
from unswayed.certificates.proofs import Proofs
from unswayed.certificates.protocol import About
from unswayed.errors import InputError, UnsoundModel, Unsupported
from unswayed.sampling.inputs import Graph
from unswayed.theory.ballots import Linear, injected_sizes, spare_of
from unswayed.theory.electorate import Electorate
from unswayed.theory.records import Injected, Record, Several
from unswayed.theory.roll import Roll

IntArray = npt.NDArray[np.int64]

ROLLS: WeakKeyDictionary[nn.Module, tuple[Tensor, int, Roll]] = WeakKeyDictionary()
FOUND: WeakKeyDictionary[nn.Module, tuple[ref[Graph], int | None, str]] = WeakKeyDictionary()
UNTOUCHED: WeakSet[nn.Module] = WeakSet()  # copies that a service alone holds: nobody writes to their tables
AT_ONCE = 2**22  # numbers written out together
FIXED = "The ballots and the known labels they were made of are frozen, and features are taken as fixed."
OWN_ROW = (
    f"The answer reads the target's own links alone, so it holds whatever happens to links elsewhere. {FIXED}"
)
SURROUNDINGS = (
    f"All links but the attackable ones, among them those of the voters, are taken as fixed. {FIXED}"
)
FAKES = f"A fake node says at most what the cap allows and has no known label; links between real nodes are taken as fixed. {FIXED}"


Claim = Callable[[Any, Any], tuple[Record, str]]
Sizing = Callable[[Electorate], IntArray]


def proofs(model: Any, threat: Any, sizes: Sizing | None = None) -> Proofs:
    """The exact proofs of a frozen model under a threat; `sizes` finds those of an electorate elsewhere."""
    claim = CLAIMS.get(threat.kind)
    if claim is None:
        raise Unsupported(
            f"A ballot model for nodes can be proved under Row, Row.new, AllPairs(data, nodes), Pairs and Inject, not under {type(threat).__name__}."
        )
    record, told = claim(model, threat)
    described = {"name": type(model).__name__, "tables sha256": model.table_hash}
    return Proofs.of(
        record,
        about(threat, model.classes),
        size=_sizes_elsewhere(model, record, sizes),
        told=told,
        model=described,
        reads={OWN_ROW: "own row", FAKES: "fakes"}.get(told, "surroundings"),
        unit_scale=float(SCALE),
        exact=told != FAKES,
    )


def _sizes_elsewhere(model: Any, record: Record, sizes: Sizing | None) -> IntArray | None:
    """The sizes, found by `sizes` or on the card where the model's tables lie; None where they are found here."""
    device = model.own_table.device
    if not isinstance(record, Electorate) or (sizes is None and device.type == "cpu"):
        return None
    return sizes_on(record, device) if sizes is None else sizes(record)


def about(threat: Any, classes: int) -> About:
    """What the certificates of a threat are about."""
    return About(threat.targets, threat.entries, classes, threat.ones, threat.describe())


def _row(model: Any, threat: Any) -> tuple[Record, str]:
    people = electorate(model, threat.graph, threat.targets, threat.entries)
    return people, SURROUNDINGS if model.reads_links else OWN_ROW


def _all_pairs(model: Any, threat: Any) -> tuple[Record, str]:
    if threat.nodes is None:
        raise Unsupported(
            "This model classifies nodes; to prove whole graphs, let pairs vote with PairBallots."
        )
    if model.reads_links:
        raise Unsupported(
            "Two-hop voters repeat what their own neighbours say, so an attacker who may touch any pair could change the "
            'ballots themselves; prove it under Row, or use voters="features".'
        )
    return electorate(model, threat.graphs[0], threat.targets, threat.entries, paired=True), OWN_ROW


def _pairs(model: Any, threat: Any) -> tuple[Record, str]:
    if threat.nodes is None:
        raise Unsupported("This model classifies nodes; name them, as in Pairs(data, pairs, nodes).")
    pairs = threat.pairs.numpy()
    step = max(1, AT_ONCE // (pairs.shape[1] * model.classes))
    people = electorate(model, threat.graph, threat.targets, threat.entries)
    parts = [
        _listed(model, people.take(slice(start, start + step)), pairs)
        for start in range(0, len(people), step)
    ]
    return Several.of(parts), SURROUNDINGS if model.reads_links else OWN_ROW


def _listed(model: Any, people: Electorate, pairs: IntArray) -> Linear:
    """The listed pairs as entries: those with the target speak by their other end, no other matters."""
    first, second = pairs[0], pairs[1]
    touches = (first == people.itself[:, None]) | (second == people.itself[:, None])
    if model.reads_links and not touches.all():
        raise Unsupported(
            "Two-hop voters can be proved only where every listed pair touches the target, since other links change their "
            'ballots; prove each target with its own pairs, or use voters="features".'
        )
    other = np.where(first == people.itself[:, None], second, first)
    target = np.repeat(np.arange(len(people)), np.diff(people.start))
    code, asked = (
        target * people.roll.voters + people.voter,
        np.arange(len(people))[:, None] * people.roll.voters + other,
    )
    place = np.minimum(np.searchsorted(code, asked), max(len(code) - 1, 0))
    there = touches & (code[place] == asked) if len(code) else np.zeros_like(touches)
    row = np.where(there, people.row[place], other) if len(code) else other
    effect = (people.roll.ballots[row].astype(np.int64) + people.own[:, None, :]) * touches[:, :, None]
    # a pair without the target may be an edge too, but it says nothing, so whether it is there does not matter
    return Linear.of_scores(people.scores, effect, there)


def _inject(model: Any, threat: Any) -> tuple[Record, str]:
    if model.reads_links or model.reach is None:
        raise Unsupported(
            "Two-hop voters repeat what their neighbours say, and fake nodes can be neighbours of anybody; under Inject use "
            'BallotNetwork with voters="features" or a Snapshot.'
        )
    people = electorate(model, threat.graph, threat.targets, threat.entries)
    own = np.take_along_axis(people.own, people.label[:, None], axis=1)
    harm = 2 * int(model.reach) - (own - people.own)
    spare = spare_of(people.scores)
    size = np.minimum(injected_sizes(people.label, spare, harm, int(threat.entries.max())), threat.entries)
    return Injected(people.label, spare, size, threat.entries), FAKES


def _arrivals(model: Any, threat: Any) -> tuple[Record, str]:
    roll_of(model, compared=model not in UNTOUCHED)
    check_graph(model, threat.graph)
    people = arriving(model, threat.x, [row.numpy() for row in threat.neighbours])
    return people, SURROUNDINGS if model.reads_links else OWN_ROW


def arriving(model: Any, x: Tensor | None, neighbours: list[IntArray]) -> Electorate:
    """Nodes that arrive, from their features and neighbours' numbers: no voters themselves, all their links new to the voters.

    What a service asks for each request: label and sizes of one come in well under a millisecond.
    """
    own, base = (table.numpy() for table in model.own_of_new(x, len(neighbours)))
    degree, voter = (
        np.array([len(row) for row in neighbours]),
        np.concatenate([np.zeros(0, np.int64), *neighbours]),
    )
    roll, count = roll_of(model), len(neighbours)
    start = np.concatenate([[0], np.cumsum(degree)])
    return Electorate(roll, own, base, start, voter, voter, np.full(count, -1), np.full(count, roll.voters))


CLAIMS: dict[str, Claim] = {
    "row": _row,
    "row-new": _arrivals,
    "all-pairs": _all_pairs,
    "pairs": _pairs,
    "inject": _inject,
}


def electorate(
    model: Any, graph: Graph, nodes: IntArray, entries: IntArray, paired: bool = False
) -> Electorate:
    """The targets of one graph with everybody who speaks to them; the scores are those of `forward`."""
    check_targets(model, nodes)
    # torch does not count what is written through `.data` or numpy, so all is hashed anew
    HASHES.pop(model, None)
    links = Links.of(graph)
    check_links(model, links)
    if model.reads_features and graph.x is None:
        raise InputError("The model reads features, and the graph has none.")
    check_features(model, graph)
    row = links.voter if model.link_rows is None else model.link_rows.long().cpu()
    everyone = Electorate(
        roll=roll_of(model, compared=True),
        own=model.own_table.cpu().numpy(),
        base=model.base_table.cpu().numpy(),
        start=links.starts().numpy(),
        row=row.numpy(),
        voter=links.voter.numpy(),
        itself=np.arange(links.nodes),
        entries=np.full(links.nodes, int(entries[0])),
        paired=paired,
    )
    whole = len(nodes) == links.nodes and np.array_equal(nodes, np.arange(links.nodes))
    return everyone if whole else everyone.take(nodes)


def roll_of(model: Any, compared: bool = False) -> Roll:
    """The frozen ballots as a roll; what was sorted once stays sorted while the model stays frozen.

    Changes in place are known by the tensor's version; `compared` also finds those that torch does not count.
    """
    table, kept = model.ballot_table, ROLLS.get(model)
    same = kept is not None and kept[0] is table and kept[1] == table._version
    if kept is None or not same or (compared and not np.array_equal(kept[2].ballots, table.cpu().numpy())):
        HASHES.pop(model, None)
        ROLLS[model] = kept = (table, table._version, Roll(table.cpu().numpy().copy(), len(model.own_table)))
    return kept[2]


def check_graph(model: Any, graph: Graph) -> None:
    """Refuse a graph that the tables are not of; one that was found to be it is not read again for each arrival."""
    known, version = FOUND.get(model), None if graph.x is None else graph.x._version
    if known is not None and known[0]() is graph and known[1:] == (version, model.table_hash):
        return
    check_links(model, Links.of(graph))
    check_features(model, graph)
    FOUND[model] = (ref(graph), version, model.table_hash)


def check_links(model: Any, links: Links) -> None:
    """Refuse a graph that the tables are not of."""
    if len(model.own_table) != links.nodes:
        raise InputError(
            f"The model is frozen for a graph of {len(model.own_table)} nodes, and this one has {links.nodes}; freeze it on this graph."
        )
    if model.link_codes is not None and not torch.equal(model.link_codes.cpu(), links.codes):
        raise InputError(
            "The model is frozen with other links than this graph's, and two-hop ballots are made of them; freeze it on this graph."
        )
    check_names(model, links.names)


def check_order(model: Any, threat: Any) -> None:
    """Refuse a threat to a graph whose nodes are not those, in their order, of frozen ballots anywhere in the model."""
    graphs = getattr(threat, "graphs", None) or [getattr(threat, "graph", None)]
    for part in model.modules() if isinstance(model, nn.Module) else ():
        if getattr(part, "frozen", False) and hasattr(part, "name_hash"):
            for graph in graphs:
                check_names(part, getattr(graph, "names", ()))


def check_names(model: Any, names: tuple[Any, ...]) -> None:
    """Refuse nodes in another order than those of the tables, as far as names tell: tables are read by place."""
    known, asked = model.name_hash, hash_of_names(names)
    if known is None or asked is None:
        told = asked if known is None else known
        same = told is None or not int(told[-1])
    else:
        same = torch.equal(asked, known.cpu())
    if not same:
        raise InputError(
            "The model is frozen for a graph that calls its nodes otherwise than this one, or has them in another order, so each would be "
            "taken for another; freeze it on this graph."
        )


def check_features(model: Any, graph: Graph) -> None:
    """Refuse features that the tables are not of."""
    if model.feature_hash is None:
        return
    if graph.x is None or not torch.equal(hash_of(graph.x), model.feature_hash.cpu()):
        raise InputError("The features are not those the model was frozen with; freeze it on this graph.")


def check_unseen(model: Any, threat: Any) -> None:
    """Refuse a threat to nodes whose links have shaped ballots anywhere in the model."""
    if threat.kind == "row-new" or getattr(threat, "nodes", None) is None:
        return
    for part in model.modules() if isinstance(model, nn.Module) else ():
        if hasattr(part, "seen_nodes"):
            check_targets(part, threat.targets)


def check_targets(model: Any, nodes: IntArray) -> None:
    """Refuse targets whose links have shaped the ballots, through a snapshot's encoder or through presumed labels."""
    # a network that is not frozen yet has no table of them, but its snapshot knows
    shaped = getattr(getattr(model, "snapshot", None), "seen", None) if model.seen is None else model.seen
    if shaped is None:
        return
    nodes = nodes[nodes < len(shaped)]  # a graph of another size is refused elsewhere
    seen = shaped.cpu().numpy()[nodes]
    if seen.any():
        raise UnsoundModel(
            f"The ballots were shaped by links of {int(seen.sum())} of the targets, the first of them node {int(nodes[seen][0])}, which an "
            "attack would change; make the snapshot, or presume labels, on a graph without any link of the targets."
        )
