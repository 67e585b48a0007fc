import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.utils.data import Subset
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.nn import global_add_pool

import unswayed as us
from unswayed.datasets import from_data
from unswayed.errors import DoubtfulSetting, InputError
from unswayed.sampling.inputs import pair_entries, read_graph
from unswayed.sampling.threats import AllPairs, Bits, Pairs, Row

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def path(**rest):
    return Data(x=torch.eye(4), edge_index=PATH, num_nodes=4, **rest)


def test_row_counts_entries_and_ones():
    threat = Row(path(), [1, 0, 3])
    assert threat.kind == "row"
    assert threat.targets.tolist() == [1, 0, 3]
    assert threat.entries.tolist() == [3, 3, 3]
    assert threat.ones.tolist() == [2, 1, 0]
    assert threat.clean(0).tolist() == [True, False, True, False]
    assert threat.data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


@pytest.mark.parametrize(
    "nodes",
    [[1, 3], (1, 3), np.array([1, 3]), torch.tensor([1, 3]), torch.tensor([False, True, False, True])],
)
def test_nodes_are_whole_numbers_or_a_mask(nodes):
    assert Row(path(), nodes).targets.tolist() == [1, 3]
    assert AllPairs(path(), nodes).targets.tolist() == [1, 3]


def test_one_node_may_be_a_bare_number():
    assert Row(path(), 2).targets.tolist() == [2]


@pytest.mark.parametrize(
    "nodes",
    [
        [],
        [4],
        [-1],
        [0.5],
        [True, False],
        torch.zeros(4, dtype=torch.bool),
        [[0, 1]],
        np.uint8([0, 1, 0, 1]),
        [0, 1, 1, 0],
    ],
)
def test_nodes_that_do_not_fit_are_refused(nodes):
    with pytest.raises(InputError):
        Row(path(), nodes)


def sources():
    adjacency = np.zeros((4, 4))
    adjacency[PATH[0], PATH[1]] = 1
    graph = nx.path_graph(3)
    graph.add_node(3)
    for node, row in enumerate(np.eye(4)):
        graph.nodes[node]["x"] = row
    return {
        "data": path(),
        "dense": (adjacency, np.eye(4)),
        "tensor": (torch.tensor(adjacency), torch.eye(4)),
        "csr": (sp.csr_array(adjacency), sp.csr_matrix(np.eye(4))),
        "coo": (sp.coo_matrix(adjacency.astype(bool)), torch.eye(4)),
        "networkx": graph,
    }


@pytest.mark.parametrize("form", sorted(sources()))
def test_every_form_of_input_reads_as_the_same_graph(form):
    assert read_graph(sources()[form]).digest() == read_graph(path()).digest()
    assert AllPairs(sources()[form]).describe() == AllPairs(path()).describe()


def test_several_graphs_from_a_list_a_batch_or_mixed_forms():
    listed = AllPairs([path(), path()])
    assert listed.targets.tolist() == [0, 1]
    assert listed.entries.tolist() == [6, 6]
    assert listed.ones.tolist() == [2, 2]
    assert AllPairs(Batch.from_data_list([path(), path()])).describe() == listed.describe()
    assert AllPairs([sources()["csr"], sources()["networkx"]]).describe() == listed.describe()
    assert len(AllPairs(path())) == 1


class Paths(InMemoryDataset):
    """A dataset of PyG that needs no files."""

    def __init__(self, count):
        super().__init__()
        self.data, self.slices = self.collate([path(y=torch.tensor([place % 2])) for place in range(count)])


class Pooled(torch.nn.Module):
    def forward(self, x, edge_index, batch):
        return global_add_pool(x[:, :2], batch)


def test_datasets_and_their_parts_are_lists_of_graphs(tmp_path):
    listed = AllPairs([path(), path()]).describe()
    assert AllPairs(Paths(2)).describe() == AllPairs(Paths(5)[3:]).describe() == listed
    assert AllPairs(Subset(Paths(5), [1, 4])).describe() == listed
    assert len(AllPairs(Paths(5)[:1])) == 1
    dataset = from_data(Paths(4))
    assert (dataset.task, len(dataset.graphs), dataset.num_classes) == ("graph", 4, 2)
    certs = us.certify(us.poll(Pooled(), AllPairs(Paths(4)), us.Flip(0.9), samples=50))
    drawn = us.write_report(tmp_path / "r.html", certs, data=Paths(4)).read_text()
    assert '"graphs":[[0,1,1,2],[0,1,1,2],[0,1,1,2],[0,1,1,2]]' in drawn.replace(" ", "")


def test_a_dataset_is_no_single_graph():
    """One whose graphs say their number of nodes answers like a graph, and ended in an error of Python."""
    dataset = Paths(3)
    assert hasattr(dataset, "num_nodes")
    for build in (lambda: Row(dataset, 0), lambda: AllPairs(dataset, [0]), lambda: us.Directed(dataset, [0])):
        with pytest.raises(InputError, match="take one of them"):
            build()


def test_graphs_without_features():
    threat = AllPairs([nx.path_graph(3), sp.csr_array(np.ones((2, 2)) - np.eye(2))])
    assert threat.entries.tolist() == [3, 1]
    assert threat.graphs[0].x is None


def test_pair_entries_are_a_prefix_of_a_larger_graphs():
    pairs = AllPairs(nx.empty_graph(6)).pairs_of(0)
    assert pair_entries(pairs).tolist() == list(range(15))
    assert bool((pairs[0] < pairs[1]).all())
    assert torch.equal(AllPairs(nx.empty_graph(4)).pairs_of(0), pairs[:, :6])


def test_directed_input_is_refused_with_the_remedy():
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]))
    for build in (lambda: Row(data, 0), lambda: AllPairs(data), lambda: Pairs(data, [(0, 1)])):
        with pytest.raises(InputError, match="to_undirected"):
            build()
    with pytest.raises(InputError, match="directed"):
        Row(nx.DiGraph([(0, 1)]), 0)


def test_duplicates_merge_and_self_loops_are_no_entries():
    edges = torch.tensor([[0, 1, 0, 1, 2, 2], [1, 0, 1, 0, 2, 2]])
    threat = Row(Data(x=torch.eye(3), edge_index=edges), [0, 2])
    assert threat.ones.tolist() == [1, 0]
    assert threat.graph.loops.tolist() == [2]
    assert threat.data.edge_index.tolist() == [[0, 1, 2], [1, 0, 2]]
    assert AllPairs(Data(x=torch.eye(3), edge_index=edges)).ones.tolist() == [1]


def test_isolated_nodes_and_a_graph_of_one_node_have_vectors_too():
    lonely = Data(x=torch.ones(1, 2), edge_index=torch.empty(2, 0, dtype=torch.long))
    assert Row(lonely, 0).entries.tolist() == [0]
    assert AllPairs([lonely, path()]).entries.tolist() == [0, 6]
    assert Row(path(), 3).ones.tolist() == [0]


def test_pairs_keep_their_order_and_know_which_are_edges():
    threat = Pairs(path(), [(2, 1), (0, 3), (0, 1)], [0, 3])
    assert threat.pairs_of(0).tolist() == [[1, 0, 0], [2, 3, 1]]
    assert threat.clean(0).tolist() == [True, False, True]
    assert threat.entries.tolist() == [3, 3]
    assert threat.ones.tolist() == [2, 2]
    assert Pairs(path(), [(0, 1)]).targets.tolist() == [0]


@pytest.mark.parametrize(
    "pairs",
    [[(0, 1), (1, 0)], [(2, 2)], [(0, 4)], [0, 1], [], torch.zeros((0, 2), dtype=torch.long), [(0.5, 1)]],
)
def test_pairs_that_do_not_fit_are_refused(pairs):
    with pytest.raises(InputError):
        Pairs(path(), pairs, [0])


def test_bits_take_zeros_and_ones_only():
    threat = Bits(sp.csr_matrix(np.array([[0, 1, 1], [0, 0, 0]])))
    assert threat.ones.tolist() == [2, 0]
    assert threat.entries.tolist() == [3, 3]
    for wrong in ([[0, 2]], [0, 1], [[0.5]], np.zeros((0, 3))):
        with pytest.raises(InputError):
            Bits(wrong)


def test_weighted_adjacencies_wrong_shapes_and_foreign_objects_are_refused():
    for source in (np.full((2, 2), 0.5), np.zeros((2, 3)), "graph", 7, (np.zeros((2, 2)), np.zeros((3, 1)))):
        with pytest.raises(InputError):
            Row(source, 0)
    with pytest.raises(InputError, match="no edge_index"):
        Row(Data(x=torch.eye(2)), 0)
    with pytest.raises(InputError, match="names node"):
        Row(Data(x=torch.eye(2), edge_index=torch.tensor([[0, 5], [5, 0]])), 0)
    with pytest.raises(InputError, match="no graph"):
        AllPairs([])


def test_descriptions_tell_apart_what_differs():
    base = Row(path(), [0, 1]).describe()
    other = path()
    other.x = other.x + 1
    less = Data(x=torch.eye(4), edge_index=PATH[:, :2])
    assert Row(path(), [0, 2]).describe()["targets"] != base["targets"]
    assert Row(other, [0, 1]).describe()["graph"] != base["graph"]
    assert Row(less, [0, 1]).describe()["graph"] != base["graph"]
    assert AllPairs(path(), [0, 1]).describe() != base
    assert Row(path(), [0, 1]).describe() == base
    assert (
        Row(path(), torch.arange(2)[::2]).describe() == Row(path(), [0]).describe()
    )  # one node out of a slice


def test_edge_attributes_are_left_out_but_remembered():
    graph = read_graph(path(edge_attr=torch.ones(4, 3), y=torch.tensor([1, 0, 1, 0])))
    assert graph.edge_data == ("edge_attr",)
    assert sorted(graph.extras) == ["y"]


@pytest.mark.parametrize(
    ("x", "says"),
    [
        ([[1.0], None], "Node 'b' has no attribute 'x'"),
        ([[1.0], [1.0, 2.0]], "'a' has 1, 'b' has 2"),
        ([[1.0], "tall"], "'b' is not a list of numbers: 'tall'"),
    ],
)
def test_networkx_features_that_are_not_alike_are_refused(x, says):
    graph = nx.Graph([("a", "b")])
    for node, value in zip("ab", x, strict=True):
        graph.nodes[node].update({} if value is None else {"x": value})
    with pytest.raises(InputError, match=says):
        Row(graph, ["a"])


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (PATH, "Data\\(x=x, edge_index=edge_index\\)"),
        ((torch.eye(4, 3), PATH), "Data\\(x=x, edge_index=edge_index\\)"),
        (np.ones((3, 4)), "not \\(3, 4\\)\\.$"),
        (2 * np.ones((4, 4)), "adjacency != 0"),
    ],
)
def test_what_is_no_adjacency_is_refused_with_what_to_give(source, says):
    with pytest.raises(InputError, match=says):
        Row(source, [0])


def test_two_pairs_in_a_square_table_are_refused_where_rows_and_columns_differ():
    edges = torch.tensor([[0, 2], [1, 3]])
    data = Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=4)
    for square in (edges, edges.numpy()):
        with pytest.raises(InputError, match="may hold a pair in each row or"):
            Pairs(data, square)
    assert Pairs(data, edges.T.tolist()).ones.tolist() == [2]
    same_both_ways = torch.tensor([[0, 1], [1, 2]])
    assert Pairs(data, same_both_ways).pairs.tolist() == [[0, 1], [1, 2]]


def test_features_that_are_no_numbers_are_warned_of():
    x = torch.ones(4, 2)
    x[2, 1] = torch.nan
    data = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 0]]))
    with pytest.warns(DoubtfulSetting, match="Node 2 has features that are no numbers"):
        us.poll(lambda x, edge_index: x, us.Row(data, [0]), us.Flip(beta=0.8), samples=10)
