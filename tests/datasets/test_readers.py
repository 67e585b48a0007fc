import numpy as np
import pytest
import torch
from scipy.io import savemat
from scipy.sparse import csc_array

from unswayed import datasets
from unswayed.datasets import catalog, readers, sources

AMHERST = catalog.entry("amherst41")


@pytest.fixture
def college(tmp_path):
    """A folder with a table like Facebook's; `rows` may be altered before it is written."""
    rng = np.random.default_rng(0)
    info = rng.integers(0, 4, size=(400, 7))
    info[:, readers.YEAR] = rng.choice([0, 2004, 2005, 2006], size=400, p=[0.1, 0.4, 0.4, 0.1])
    friends = np.triu(rng.random((400, 400)) < 0.05, 1)

    def write(rows=info):
        savemat(
            tmp_path / "data.mat", {"A": csc_array((friends + friends.T).astype(float)), "local_info": rows}
        )
        return readers._facebook(tmp_path, AMHERST)

    write.info = info
    return write


def test_the_year_is_the_label_and_never_a_feature(college):
    read, other = college(), college.info.copy()
    kept = np.isin(college.info[:, readers.YEAR], [2004, 2005])
    assert read.class_names == ("2004", "2005")  # 2006 has fewer than 100 students, 0 is missing
    assert read.y.tolist() == (college.info[kept, readers.YEAR] - 2004).tolist()
    other[kept, readers.YEAR] = 4009 - other[kept, readers.YEAR]  # every student in the other year
    swapped = college(other)
    assert torch.equal(swapped.y, 1 - read.y)
    assert torch.equal(swapped.x, read.x)
    assert torch.equal(swapped.edge_index, read.edge_index)


def test_features_are_the_values_that_twenty_hold_and_never_a_missing_one():
    column = np.repeat([0, 3, 5], [30, 20, 19])
    assert readers.one_hot(column[:, None]).sum(axis=0).tolist() == [20.0]


@pytest.mark.parametrize("name", ["amherst41", "cornell5"])
def test_no_feature_of_the_real_tables_tells_the_year(name):
    """No value is a year under another name: none is held by one class alone, and none that many hold by nine tenths of one."""
    if sources.find(catalog.entry(name)) is None:
        pytest.skip(f"{name} is not on this machine")
    dataset = datasets.load(name)
    x, years = dataset.graph.x, torch.nn.functional.one_hot(dataset.labels).float()
    share = ((x.T @ years).max(dim=1).values / x.sum(dim=0)).numpy()
    assert share.max() < 1
    assert share[x.sum(dim=0).numpy() >= 100].max() < 0.9


@pytest.mark.parametrize("name", ["highschool", "primaryschool"])
def test_contacts_are_counted_once_and_classes_belong_to_students(name, tmp_path):
    about = catalog.entry(name)
    text = "10 7 9 MP PC\n20 9 7 PC MP\n30 9 11 PC PC\n"
    (tmp_path / about.files[0]).write_text(text)
    read = readers._contacts(tmp_path, about)
    assert read.class_names == ("MP", "PC")
    assert read.y.tolist() == [0, 1, 1]
    assert read.data().edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_the_largest_component_keeps_its_labels(tmp_path):
    (tmp_path / "adjacency.tsv").write_text("0\t1\n1\t2\n4\t3\n")
    (tmp_path / "labels.tsv").write_text("1\n0\n1\n0\n0\n")
    read = readers._polblogs(tmp_path, catalog.entry("polblogs"))
    assert read.y.tolist() == [1, 0, 1]
    assert read.data().edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
