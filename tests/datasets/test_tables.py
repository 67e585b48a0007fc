import numpy as np
import pytest
import torch

from unswayed import datasets
from unswayed.errors import DoubtfulSetting, InputError

EDGES = "source,target\na,b\nb,c\nb,a\n"
FEATURES = "node,f,g\na,1,0\nb,0,1\nc,0.5,2\n"
LABELS = "node,label,split\na,0,train\nb,1,val\nc,1,test\n"


@pytest.fixture
def read(tmp_path):
    def reader(edges=EDGES, features=FEATURES, labels=LABELS):
        for name, text in (("e.csv", edges), ("x.csv", features), ("y.csv", labels)):
            (tmp_path / name).write_text(text)
        return datasets.read_csv(*(tmp_path / name for name in ("e.csv", "x.csv", "y.csv")))

    return reader


def test_three_files_make_an_undirected_graph_with_a_split(read):
    dataset, split = read()
    assert dataset.graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert dataset.graph.x.tolist() == [[1, 0], [0, 1], [0.5, 2]]
    assert (dataset.num_features, dataset.num_classes, dataset.node_names) == (2, 2, ("a", "b", "c"))
    assert split.test.tolist() == [2]


def test_class_names_are_numbered_in_order(read):
    dataset, split = read(labels="node,label\nc,spam\na,ham\n")
    assert dataset.class_names == ("ham", "spam")
    assert dataset.labels.tolist() == [0, -1, 1]
    assert split is None


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"edges": "from,target\na,b\n"}, "no column 'source'"),
        ({"edges": "source;target\na;b\n"}, "has ';' between its columns; save it with commas"),
        ({"features": "node;f;g\na;1,5;0\nb;2,5;1\nc;0,5;2\n"}, "has ';' between its columns"),
        ({"edges": "source\ttarget\na\tb\n"}, "has a tab between its columns"),
        ({"edges": "source,target\na,zzz\n"}, "'zzz' is not a node"),
        ({"edges": "source,target\n"}, "no rows"),
        ({"edges": ""}, "not a readable CSV file: it is empty.$"),
        ({"edges": "source,target\na,b\n\na,b,c\n"}, "file: line 4 has 3 values, and those before it 2;"),
        (
            {"edges": 'source,target\na,b\n"a,b\nb,c\n'},
            "file: the quotation mark near line 3 is never closed.$",
        ),
        ({"features": "node,f\na,1\na,2\n"}, "lists node a twice"),
        ({"features": "node,f\na,1\n,2\nb,1\n", "edges": "source,target\na,\nb,a\n"}, "a row without a node"),
        ({"features": "node,f\na,nan\nb,1\nc,1\n"}, "of node a|for node a"),
        ({"features": "node,f\na,inf\nb,1\nc,1\n"}, "NaN, infinite or far too large for node a"),
        ({"features": "node,f\na,red\nb,1\nc,1\n"}, "'red' of node a is not a number; .* column of 0 and 1"),
        ({"features": "node\na\nb\nc\n"}, "no feature columns"),
        ({"labels": "node,label\na,0\na,1\n"}, "lists node a twice"),
        ({"labels": "node,label\nq,0\n"}, "'q' is not a node"),
        (
            {"labels": "node,label\na,-1\nb,0\n"},
            "label -1 is out of range; .*leave a label empty where it is unknown",
        ),
        ({"labels": "node,label\na,99999\nb,0\n"}, "label 99999 is out of range"),
        ({"labels": "node,label\na,x\nb,x\n"}, "one class only"),
        ({"labels": "node,label\na,\nb,\n"}, "no labels"),
        ({"labels": "node,label,split\na,,val\nb,1,train\nc,0,test\n"}, "node 'a' of val has no label"),
        ({"labels": "node,label,label \na,0,1\nb,1,0\n"}, "two columns 'label'"),
        ({"features": "node,f,f \na,1,1\nb,1,1\nc,1,1\n"}, "two columns 'f'"),
        ({"labels": "node,label,split\na,0,train\nb,1,exam\n"}, "'exam' is not one of"),
        ({"labels": "node,label,split\na,0,train\nb,1,val\n"}, "no test row"),
    ],
)
def test_every_mistake_is_one_sentence(read, wrong, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        read(**wrong)
    assert "\n" not in str(caught.value).strip()


@pytest.mark.parametrize(
    "wrong",
    [
        {"edges": "source,target\n0,1,2\n1,2,2\n"},  # weights that the header does not name
        {"features": "node,f\n5,0,1\n6,1,2\n7,2,3\n"},
        {"labels": "node,label\n0,1,0\n1,2,1\n"},
    ],
)
def test_rows_longer_than_the_header_move_nothing_to_another_column(read, wrong):
    numbered = {
        "edges": "source,target\n0,1\n",
        "features": "node,f\n0,1\n1,2\n2,3\n",
        "labels": "node,label\n0,0\n2,1\n",
    }
    with pytest.raises(InputError, match="rows with more values than its header has names"):
        read(**{**numbered, **wrong})


def test_whole_numbers_as_tables_write_them_are_class_numbers(read):
    dataset, _ = read(labels="node,label\na,2.0\nb,0.0\nc,10.0\n")
    assert dataset.labels.tolist() == [2, 0, 10]
    dataset, _ = read(labels="node,label\na,01\nb,1\nc,1_0\n")
    assert [dataset.class_names[label] for label in dataset.labels] == ["01", "1", "1_0"]


def test_missing_and_too_large_files(read, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no file"):
        datasets.read_csv(tmp_path / "none.csv", tmp_path / "none.csv", tmp_path / "none.csv")
    monkeypatch.setattr("unswayed.datasets.csv_text.MAX_FILE", 10)
    with pytest.raises(InputError, match="larger than"):
        read()


def test_sparse_and_dense_npz_features_agree(read, tmp_path):
    from scipy import sparse

    read()  # writes the CSV files
    values = np.array([[1, 0], [0, 1], [0.5, 2]], dtype=np.float32)
    sparse.save_npz(tmp_path / "s.npz", sparse.csr_matrix(values))
    np.savez(tmp_path / "d.npz", x=values, nodes=np.array(["a", "b", "c"]))
    dense, _ = datasets.read_csv(tmp_path / "e.csv", tmp_path / "d.npz", tmp_path / "y.csv")
    assert torch.equal(dense.graph.x, torch.from_numpy(values))
    (tmp_path / "e2.csv").write_text("source,target\n0,1\n")
    (tmp_path / "y2.csv").write_text("node,label\n0,0\n1,1\n")
    thin, _ = datasets.read_csv(tmp_path / "e2.csv", tmp_path / "s.npz", tmp_path / "y2.csv")
    assert torch.equal(thin.graph.x, dense.graph.x)


def test_a_damaged_npz_is_refused(read, tmp_path):
    read()
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(InputError, match="not a readable"):
        datasets.read_csv(tmp_path / "e.csv", tmp_path / "bad.npz", tmp_path / "y.csv")


def test_columns_of_edges_that_nobody_reads_are_named(read):
    with pytest.warns(DoubtfulSetting, match=r"e\.csv: .*'weight', 'since' .*not read"):
        dataset, _ = read(edges="source,target,weight,since\na,b,0.1,1999\nb,c,7,2001\n")
    assert dataset.graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_a_folder_in_place_of_a_file_is_called_one(read, tmp_path):
    read()
    with pytest.raises(InputError, match="is a folder; name the file in it"):
        datasets.read_csv(tmp_path, tmp_path / "x.csv", tmp_path / "y.csv")


def test_an_empty_label_is_unknown(read):
    dataset, _ = read(labels="node,label\na,\nb,1.0\nc,0.0\n")
    assert dataset.labels.tolist() == [-1, 1, 0]
    assert read(labels="node,label\na,nan\nb,spam\nc,ham\n")[0].class_names == ("ham", "spam")


def labelled(*names):
    nodes = [f"n{place}" for place in range(len(names))]
    rows = zip(nodes, names, strict=True)
    return {
        "edges": "source,target\nn0,n1\n",
        "features": "node,f\n" + "".join(f"{node},1\n" for node in nodes),
        "labels": "node,label\n" + "".join(f"{node},{name}\n" for node, name in rows),
    }


def test_labels_that_may_be_one_are_told(read):
    with pytest.warns(DoubtfulSetting, match="'No Fraud' and 'nofraud' differ only in case or blank space"):
        read(**labelled("No Fraud", "nofraud", "fraud"))


def test_a_class_of_one_node_among_large_ones_is_told(read):
    with pytest.warns(DoubtfulSetting, match="a single node has the label 'frued'"):
        read(**labelled(*["fraud"] * 5, "honest", "honest", "frued"))
    read(**labelled("fraud", "fraud", "honest"))  # where no class is large, nothing is odd


def test_a_word_for_what_is_not_known_is_told(read):
    with pytest.warns(DoubtfulSetting, match="'Unknown' is taken for a class of its own"):
        read(**labelled("fraud", "honest", "Unknown", "Unknown"))
    read(**labelled("-1", "spam"))  # of two labels each is one
