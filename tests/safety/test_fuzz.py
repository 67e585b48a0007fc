"""A small part of the recorded fuzzing run, with seeds of its own, and the findings that it once made."""

import contextlib
import io
import json

import numpy as np
import pytest

import unswayed as us
from benchmarks.checks import fuzz as everything
from benchmarks.checks.fuzz_readers import exactly_certified
from unswayed.cli.main import main
from unswayed.datasets import read_csv
from unswayed.errors import InputError, StoreError
from unswayed.store import Store

EVIL = "<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def fuzz():
    with pytest.MonkeyPatch.context() as patch:
        from unswayed.cli import inputs, models

        patch.setattr(inputs, "fetch", inputs.fetch)
        patch.setattr(models, "_train", models._train)  # put back afterwards
        patch.setattr(models, "make_floor", models.make_floor)
        everything.shortcuts()
        yield everything


@pytest.mark.parametrize(
    ("target", "cases"),
    [("votes", 300), ("settings", 200), ("tables", 150), ("records", 20), ("commands", 20)],
)
def test_damaged_input_is_refused_in_one_sentence_or_read_right(fuzz, target, cases):
    ends, findings = fuzz.fuzz(target, cases, seed=1234)
    assert not findings, findings[0]
    assert sum(ends.values()) == cases


def test_the_independent_certificate_disagrees_with_wrong_ones(fuzz):
    noise = us.Flip(beta=0.7)
    sizes = us.theory.certified_size(np.array([0.9, 0.99, 0.6]), np.array([0.1, 0.01, 0.4]), noise, 100)
    for p_top, size in zip((0.9, 0.99, 0.6), sizes.tolist(), strict=True):
        assert exactly_certified(p_top, 1 - p_top, noise, size)
        assert not exactly_certified(p_top, 1 - p_top, noise, size + 1)


def tables(folder, features="node,a\n0,1\n1,2\n2,3\n"):
    (folder / "e.csv").write_text("source,target\n0,1\n1,2\n")
    (folder / "x.csv").write_text(features)
    (folder / "y.csv").write_text("node,label\n0,0\n1,1\n2,1\n")
    return folder / "e.csv", folder / "x.csv", folder / "y.csv"


class TestFindings:
    """Each of these once crashed, hung or misjudged."""

    def test_a_sparse_index_outside_its_table(self, tmp_path):
        edges, _, labels = tables(tmp_path)
        np.savez(
            tmp_path / "x.npz",
            data=np.ones(3),
            indices=np.array([10**7, 0, 1]),
            indptr=np.arange(4),
            shape=[3, 2],
        )
        with pytest.raises(InputError, match="not a readable"):
            read_csv(edges, tmp_path / "x.npz", labels)

    @pytest.mark.parametrize(
        "change",
        [
            {"indices": [-1, 0, 1]},
            {"indptr": [0, 3, 1, 3]},
            {"indices": [0]},
            {"shape": [2, 2]},
            {"indptr": [0, 1, 2, 2**40]},
        ],
    )
    def test_a_sparse_table_that_is_none(self, tmp_path, change):
        edges, _, labels = tables(tmp_path)
        parts = {"data": np.ones(3), "indices": [0, 0, 1], "indptr": [0, 1, 2, 3], "shape": [3, 2]}
        np.savez(tmp_path / "x.npz", **{**parts, **change})
        with pytest.raises(InputError, match="not a readable"):
            read_csv(edges, tmp_path / "x.npz", labels)

    def test_a_sparse_table_by_columns_is_not_read_as_one_by_rows(self, tmp_path):
        from scipy import sparse

        edges, _, labels = tables(tmp_path)
        x = sparse.csr_matrix(np.arange(9.0).reshape(3, 3))
        sparse.save_npz(tmp_path / "x.npz", x)
        assert read_csv(edges, tmp_path / "x.npz", labels)[0].data.x.tolist() == x.toarray().tolist()
        sparse.save_npz(tmp_path / "x.npz", x.tocsc())
        with pytest.raises(InputError, match="csr form"):
            read_csv(edges, tmp_path / "x.npz", labels)

    def test_a_folder_in_the_place_of_a_file_to_write(self, tmp_path):
        with pytest.raises(InputError, match="is a folder"):
            us.Votes.from_counts([[9, 1]], us.Flip(beta=0.7), entries=5).save(tmp_path)
        assert list(tmp_path.parent.glob("*.part")) == []

    def test_brackets_that_nest_too_deeply(self, tmp_path):
        store = Store(tmp_path)
        (tmp_path / "settings.json").write_bytes(b"[" * 100_000)
        with pytest.raises(StoreError, match="damaged"):
            store.settings()

    def test_a_damaged_archive_is_the_files_fault_not_the_disks(self, tmp_path):
        path = tmp_path / "v.npz"
        us.Votes.from_counts([[9, 1]], us.Flip(beta=0.7), entries=5).save(path)
        content = bytearray(path.read_bytes())
        for place in range(len(content) - 22, len(content)):
            broken = bytearray(content)
            broken[place] ^= 0xFF
            path.write_bytes(broken)
            with contextlib.suppress(StoreError):  # and nothing else; some bytes do not matter
                us.load(path)

    @pytest.mark.parametrize(
        "words", [["--samples", str(10**20)], ["--samples", str(10**12)], ["--seed", str(10**20)]]
    )
    def test_absurd_numbers(self, words, capsys):
        assert main(["certify", "--dataset", "karate", "--nodes", "1", "--no-floor", *words]) == 2
        assert capsys.readouterr().err.strip().splitlines()[-1].startswith("unswayed: --")

    @pytest.mark.parametrize(
        "change", [{"title": ["a"]}, {"names": [1, 2]}, {"alpha": {}}, {"training": 3}, {"truth": ["x", "y"]}]
    )
    def test_a_record_with_fields_of_other_types(self, tmp_path, change, capsys, fuzz):
        store = str(tmp_path / "run")
        assert (
            main(
                [
                    "certify",
                    "--dataset",
                    "karate",
                    "--nodes",
                    "1,2",
                    "--samples",
                    "30",
                    "--no-floor",
                    "--store",
                    store,
                ]
            )
            == 0
        )
        record = tmp_path / "run" / "run.json"
        record.write_text(json.dumps({**json.loads(record.read_text()), **change}))
        assert main(["report", store, "--out", str(tmp_path / "page.html")]) == 2
        assert "damaged" in capsys.readouterr().err


class TestHostileFiles:
    def test_pickles_inside_archives_are_never_loaded(self, tmp_path):
        class Bomb:
            def __reduce__(self):
                return (open, (str(tmp_path / "exploded"), "w"))

        out = io.BytesIO()
        np.savez(
            out,
            x=np.array([Bomb()] * 3, object),
            blocks=np.array([Bomb()], object),
            about=np.array([Bomb()], object),
        )
        (tmp_path / "x.npz").write_bytes(out.getvalue())
        edges, _, labels = tables(tmp_path)
        with pytest.raises(InputError):
            read_csv(edges, tmp_path / "x.npz", labels)
        with pytest.raises(StoreError):
            us.load(tmp_path / "x.npz")
        assert not (tmp_path / "exploded").exists()

    def test_names_are_escaped_in_the_report(self, tmp_path, fuzz):
        hostile = [f"{EVIL}{i}" for i in range(12)]
        quoted = ['"' + name.replace('"', '""') + '"' for name in hostile]
        (tmp_path / "x.csv").write_text(
            "node,a,b\n" + "".join(f"{name},{i},{i % 2}\n" for i, name in enumerate(quoted))
        )
        (tmp_path / "e.csv").write_text(
            "source,target\n" + "".join(f"{quoted[i]},{quoted[(i + 1) % 12]}\n" for i in range(12))
        )
        labels = "".join(
            f"{name},{quoted[i % 2]},{('train', 'val', 'test')[i // 2 % 3]}\n"
            for i, name in enumerate(quoted)
        )
        (tmp_path / "y.csv").write_text("node,label,split\n" + labels)
        page = tmp_path / "page.html"
        files = [
            "--edges",
            str(tmp_path / "e.csv"),
            "--features",
            str(tmp_path / "x.csv"),
            "--labels",
            str(tmp_path / "y.csv"),
        ]
        assert main(["certify", *files, "--samples", "50", "--no-floor", "--report", str(page)]) == 0
        text = page.read_text()
        assert "alert(1)" in text
        assert "<script>alert(1)" not in text
