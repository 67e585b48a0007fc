"""Noisy copies of a graph to train on; what certifies is drawn elsewhere, from a stream of another purpose."""

import copy
from typing import Any

import torch
from torch import Tensor

from unswayed.errors import InputError
from unswayed.sampling.inputs import pair_entries, read_graph
from unswayed.sampling.reading import read_nodes
from unswayed.sampling.sparse_graphs import noisy_edges
from unswayed.sampling.stream import Stream
from unswayed.theory.noise import Noise


def noisy(data: Any, noise: Noise, *, nodes: Any = None, seed: int | None = None) -> Any:
    """A copy of the Data whose edges are noisy, for training: never with noise that certifies, which has another purpose.

    Every pair of nodes is noisy; with `nodes` only the pairs that touch one of them, which is the noise of `Row` for these nodes at
    once. Without a `seed`, each call draws anew (from torch's generator, so `torch.manual_seed` decides). As a transform of
    torch_geometric: `functools.partial(unswayed.noisy, noise=unswayed.Flip(0.9))`.
    """
    if not hasattr(data, "edge_index"):
        raise InputError(f"noisy takes a torch_geometric Data, not {type(data).__name__}.")
    if not isinstance(noise, Noise) or noise.threats:
        raise InputError("noisy takes noise that is drawn entry by entry: Flip or AddDelete.")
    graph = read_graph(data)
    if graph.edge_data:
        raise InputError(
            f"The data carries {graph.edge_data[0]}, which edges that noise adds do not have; make it from the end nodes afterwards."
        )
    drawn = int(torch.randint(2**62, ())) if seed is None else seed
    stream, changed = Stream(drawn, "train"), copy.copy(data)
    if nodes is None:
        edges = noisy_edges(graph, pair_entries(graph.pairs), stream, noise, 0, 1)
    else:
        chosen = read_nodes(nodes, graph.num_nodes, graph.names)
        there = torch.zeros((len(chosen), graph.num_nodes), dtype=torch.bool)
        for row, node in enumerate(chosen.tolist()):
            there[row, graph.edge_index[1, graph.edge_index[0] == node]] = True
        zero, one = stream.flips(0, len(chosen), graph.num_nodes, noise)
        edges = rewired(graph.edge_index, chosen, torch.where(there, ~one, zero))
    changed.edge_index = edges.to(data.edge_index.device)
    return changed


def rewired(edge_index: Tensor, nodes: Tensor, rows: Tensor) -> Tensor:
    """int64[2, edges]: the graph in which the links of these nodes are those of `rows` bool[B, n], all at once.

    Where two of the nodes disagree about the link between them, the first of them decides; self-loops stay.
    """
    count = rows.shape[1]
    place = torch.full((count,), len(nodes), device=nodes.device)
    place[nodes.flip(0)] = torch.arange(len(nodes) - 1, -1, -1, device=nodes.device)
    ours = (place[edge_index[0]] < len(nodes)) | (place[edge_index[1]] < len(nodes))
    stays = edge_index[:, ~ours | (edge_index[0] == edge_index[1])]
    row, other = rows.nonzero(as_tuple=True)
    node = nodes[row]
    decides = (place[node] == row) & (place[other] >= row) & (node != other)
    one, two = node[decides], other[decides]
    return torch.cat([stays, torch.stack([torch.cat([one, two]), torch.cat([two, one])])], dim=1)
