import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import unswayed as us
from unswayed.errors import InputError
from unswayed.report.html import render, write_report
from unswayed.report.summary import summarise

NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\"'{{facts}}"


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.words = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


def embedded(page):
    return json.loads(re.search(r'<script type="application/json" id="facts">(.*?)</script>', page, re.S)[1])


def test_writes_one_file_and_returns_its_path(tmp_path, certs, truth, graph):
    path = write_report(
        tmp_path / "r.html", certs, data=graph, truth=truth, floor=0.5, command="unswayed certify"
    )
    assert path.read_text().startswith("<!doctype html>")
    assert [file.name for file in tmp_path.iterdir()] == ["r.html"]


def test_nothing_points_outside(certs, truth, graph):
    page = render(summarise(certs, data=graph, truth=truth), graph)
    for tag, attributes in Page(page).tags:
        assert tag not in ("link", "iframe", "img", "object", "embed", "base")
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    assert not re.search(r"@import|url\((?!#)", page)
    policy = next(
        a["content"] for t, a in Page(page).tags if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'")


def test_every_word_from_outside_is_escaped(certs, truth, graph):
    names = [NASTY] * len(certs)
    plain = render(summarise(certs, data=graph, truth=truth, floor=0.5, command="c", title="t"), graph)
    summary = summarise(
        certs, data=graph, truth=truth, floor=type("F", (), {"accuracy": 0.5, "name": NASTY})(), command=NASTY,
        title=NASTY, names=names, class_names=[f"{NASTY}{i}" for i in range(4)], settings={NASTY: NASTY},
    )  # fmt: skip
    page = render(summary, graph)
    count = lambda text, tag: sum(name == tag for name, _ in Page(text).tags)  # noqa: E731
    assert count(page, "script") == count(plain, "script") == 2
    assert count(page, "img") == 0
    assert embedded(page)["classes"] == [f"{NASTY}{i}" for i in range(4)]
    assert embedded(page)["columns"]["name"] == names


def test_embedded_columns_are_the_certificates_weakest_first(certs, truth, graph):
    page = embedded(render(summarise(certs, data=graph, truth=truth), graph))
    columns = page["columns"]
    place = {node: spot for spot, node in enumerate(certs.targets.tolist())}
    spots = [place[node] for node in columns["id"]]
    assert columns["size"] == sorted(columns["size"])
    assert columns["size"] == certs.size[spots].tolist()
    assert columns["label"] == certs.label[spots].tolist()
    assert columns["truth"] == truth[spots].tolist()
    # shown digits may only err against the certificate
    shown = {column["name"]: column["values"] for column in page["evidence"]}
    assert np.all(np.array(shown["p_top"]) <= certs.p_top[spots])
    assert np.all(np.array(shown["p_rest"]) >= certs.p_rest[spots])


def test_a_whole_citation_network_stays_small(tmp_path):
    rng = np.random.default_rng(0)
    counts = rng.multinomial(10_000, [0.9, 0.05, 0.02, 0.01, 0.01, 0.005, 0.005], size=2708)
    votes = us.Votes.from_counts(counts, us.Flip(beta=0.7), 2707, provenance={"threat": {"kind": "row"}})
    edges = rng.integers(2708, size=(2, 10_000))
    data = type("D", (), {"edge_index": edges, "num_nodes": 2708, "y": rng.integers(7, size=2708)})()
    path = write_report(tmp_path / "r.html", us.certify(votes), data=data, truth=data.y, floor=0.5)
    assert path.stat().st_size < 1_000_000


def test_equal_inputs_give_equal_pages(certs, truth, graph):
    one, two = (render(summarise(certs, data=graph, truth=truth), graph) for _ in range(2))
    assert one == two


def test_only_asymmetric_noise_has_a_heat_map(certs, certs_of):
    asymmetric, truth = certs_of(noise=us.AddDelete(p_add=0.01, p_delete=0.4))
    assert "Additions against deletions" not in render(summarise(certs))
    page = render(summarise(asymmetric, truth=truth))
    assert "Additions against deletions" in page
    shares = asymmetric.grid(1, 0)[:, 1, 0] & (asymmetric.label == truth)
    assert re.search(rf"1 added and 0 deleted: {round(100 * shares.mean())}%", page)


def test_asymmetric_noise_tells_additions_from_deletions(certs_of):
    certs, truth = certs_of(noise=us.AddDelete(p_add=0.01, p_delete=0.4))

    def proven(spot, adds, deletes):
        bounds = certs.p_top[spot], certs.p_rest[spot]
        return bool(us.theory.is_certified(*bounds, certs.noise, adds=adds, deletes=deletes))

    columns = embedded(render(summarise(certs, truth=truth)))["columns"]
    place = {node: spot for spot, node in enumerate(certs.targets.tolist())}
    for node, adds, deletes, size in zip(
        *(columns[key] for key in ("id", "adds", "deletes", "size")), strict=True
    ):
        spot = place[node]
        assert adds >= size
        assert deletes >= size
        if size >= 0:
            assert proven(spot, adds, 0)
            assert adds == 299 or not proven(spot, adds + 1, 0)
            assert proven(spot, 0, deletes)
            assert deletes == 299 or not proven(spot, 0, deletes + 1)


def test_graph_targets_bring_their_own_pictures(certs_of):
    certs, truth = certs_of(targets=5, kind="all-pairs")
    graphs = [
        type("G", (), {"edge_index": np.array([[0, 1], [1, 0]]), "num_nodes": 2 + place})()
        for place in range(5)
    ]
    page = embedded(render(summarise(certs, data=graphs, truth=truth), graphs))
    place = {node: spot for spot, node in enumerate(certs.targets.tolist())}
    assert page["picture"]["nodes"] == [2 + place[node] for node in page["columns"]["id"]]
    assert page["picture"]["graphs"][0] == [0, 1]


def test_a_missing_folder_is_said(certs, tmp_path):
    with pytest.raises(InputError, match="There is no folder"):
        write_report(tmp_path / "no such folder" / "r.html", certs)


def test_what_is_no_report_is_not_written_over(certs, tmp_path):
    data = tmp_path / "E.csv"
    data.write_text("source,target\n1,2\n")
    with pytest.raises(InputError, match=r"E\.csv is there already and is no report"):
        write_report(data, certs)
    assert data.read_text() == "source,target\n1,2\n"
    page = tmp_path / "page.html"
    assert write_report(page, certs) == write_report(page, certs) == page


def test_attacks_appear_beside_the_certificates(certs, truth):
    attacked = np.where(certs.size >= 0, certs.size + 2, -1)
    page = render(summarise(certs, truth=truth, attacked=attacked))
    assert "not broken by the attacks found" in page
    assert embedded(page)["columns"]["attacked"] is not None


def test_what_stays_flagged_comes_first_with_the_size_its_sentence_speaks_of(certs, truth):
    summary = summarise(certs, truth=truth, positive=1)
    page = render(summary)
    assert page.index('id="flags"') < page.index("<h2>Certified accuracy")
    card = page[page.index('id="flags"') : page.index("<h2>Certified accuracy")]
    size = re.search(r"up to (\d+) of", card) or re.search(r"(one) of", card)
    shown = re.findall(r"<tr><td>(\d+)</td>", card)
    assert size[1].replace("one", "1") in shown
    assert shown == sorted(shown, key=int)
