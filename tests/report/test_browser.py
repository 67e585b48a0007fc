"""The page in a real Chromium: it sorts, searches, draws, obeys the keyboard, and asks nothing of anybody."""

import numpy as np
import pytest

import unswayed as us
from tests import browsing
from tests.browsing import complaints
from unswayed.report.html import write_report

pytestmark = pytest.mark.browser

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
]
NASTY = '</script><img src="https://example.invalid/x.png" onerror="window.hacked=1">'


@pytest.fixture(scope="module")
def chromium():
    with browsing.chromium(*QUIET) as browser:
        yield browser


@pytest.fixture
def visit(chromium):
    """Open a page and, when the test ends, insist that it logged nothing and asked for nothing but itself."""
    contexts, noise, requests = [], [], []

    def go(path, **options):
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: noise.append(message.text))
        page.on("pageerror", lambda error: noise.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield go
    for context in contexts:
        context.close()
    assert noise == []
    assert len(requests) == len(contexts)
    assert all(url.startswith("file:") for url in requests)


LOOKS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True},
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("kind", ["row", "asymmetric", "flagged", "one"])
def test_an_accessibility_checker_finds_nothing(visit, tmp_path, certs_of, graph, kind, look):
    noise = us.AddDelete(p_add=0.02, p_delete=0.4) if kind == "asymmetric" else None
    certs, truth = certs_of(targets=1 if kind == "one" else 30, noise=noise)
    flag = {"positive": int(truth[0])} if kind == "flagged" else {}
    path = write_report(tmp_path / "r.html", certs, data=graph, truth=truth, floor=0.5, command="x", **flag)
    page = visit(path, bypass_csp=True, **LOOKS[look])
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert complaints(page) == []


def test_print_leaves_out_what_paper_cannot_do(visit, report):
    page = visit(report[2])
    page.emulate_media(media="print")
    for part in (".tools", "#more", "#copy", "aside"):
        assert not page.locator(part).first.is_visible()
    assert page.locator("h1").is_visible()
    assert page.locator("#table tbody tr").count() > 0


@pytest.mark.parametrize("look", LOOKS)
def test_tab_reaches_everything_and_shows_where_it_is(visit, report, look):
    page = visit(report[2], **LOOKS[look])
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    met, hidden, expected = browsing.walked(page)
    assert hidden == []
    assert met == expected > 10


def test_paper_has_every_row_and_the_same_contrast(visit, report):
    certs, _, path = report
    page = visit(path, bypass_csp=True)
    page.emulate_media(media="print", color_scheme="light")
    assert complaints(page) == []
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(sizes(page)) == len(certs)
    assert not page.locator("#rest").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert len(sizes(page)) == 25
    assert page.inner_text("#rest") == f"{len(certs) - 25} more are in the page itself."
    assert len(page.pdf(format="A4")) > 10_000
    page.emulate_media(media="screen")
    assert not page.locator("#rest").is_visible()


@pytest.fixture
def report(tmp_path, certs_of, graph):
    certs, truth = certs_of(targets=80)
    attacked = np.where(certs.size >= 0, certs.size + 2, -1)
    path = write_report(
        tmp_path / "r.html", certs, data=graph, truth=truth, floor=0.5, attacked=attacked, command="x y"
    )
    return certs, truth, path


def column(page, place):
    return page.locator(f"#table tbody td:nth-child({place})").all_inner_texts()


def sizes(page):
    heads = page.locator("#table thead button").all_inner_texts()
    return [-1 if text == "–" else int(text) for text in column(page, heads.index("K") + 1)]


def test_starts_with_the_weakest_and_shows_more(visit, report):
    certs, _, path = report
    page = visit(path)
    assert sizes(page) == sorted(certs.size.tolist())[:25]
    page.click("#more")
    assert len(sizes(page)) == len(certs)
    assert not page.is_visible("#more")


def test_sorts_by_any_column_both_ways(visit, report):
    certs, _, path = report
    page = visit(path)
    head = page.get_by_role("button", name="K", exact=True)
    head.click()
    head.click()
    assert sizes(page) == sorted(certs.size.tolist(), reverse=True)[:25]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("K")
    page.locator("#table thead button").first.click()
    shown = [int(text) for text in column(page, 1)]
    assert shown == sorted(certs.targets.tolist())[:25]


def test_searches_and_filters(visit, report):
    certs, truth, path = report
    page = visit(path)
    node = int(certs.targets[7])
    page.fill("#search", str(node))
    assert str(node) in column(page, 1)
    assert all(text.startswith(str(node)) for text in column(page, 1))
    page.fill("#search", "no such thing")
    assert column(page, 1) == []
    assert page.inner_text("#found") == f"0 of {len(certs)} nodes"
    page.fill("#search", "")
    page.select_option("#filter", label="wrong label")
    wrong = int(((certs.label != truth) & ~certs.abstained).sum())
    assert page.inner_text("#found") == f"{wrong} of {len(certs)} nodes"


def test_choosing_a_target_draws_its_neighbourhood(visit, report, graph):
    certs, _, path = report
    page = visit(path)
    degree = [int((graph.edge_index[0] == node).sum()) for node in certs.targets]
    place = int(np.argmax(np.where(certs.size > 0, degree, -1)))
    node = int(certs.targets[place])
    page.fill("#search", str(node))
    page.locator("#table tbody button", has_text=str(node)).first.click()
    assert page.inner_text("#chosen-title") == f"Node {node}: K = {certs.size[place]}"
    drawn = page.locator("#picture line.edge:not(.far)").count()
    neighbours = {int(v) for u, v in graph.edge_index.T if u == node and v != node}
    assert drawn == min(len(neighbours), 24)
    assert f"K {certs.size[place]}" in page.text_content("#picture svg")


def test_works_from_the_keyboard(visit, report):
    certs, _, path = report
    page = visit(path)
    page.focus("#search")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('th') !== null")
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort=ascending]").count() == 1
    page.locator("#table tbody button").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    second = sorted(certs.targets.tolist())[1]
    assert page.inner_text("#chosen-title").startswith(f"Node {second}:")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_schemes(visit, report, scheme):
    page = visit(report[2], color_scheme=scheme)
    shades = page.evaluate(
        """() => [getComputedStyle(document.body).backgroundColor,
             ...["h1", ".lead", "#chosen-words", "dd", ".floor-text"].map(s => {
               const style = getComputedStyle(document.querySelector(s));
               return s === ".floor-text" ? style.fill : style.color; })]"""
    )
    paper, *inks = [_luminance(shade) for shade in shades]
    for ink in inks:
        high, low = max(paper, ink), min(paper, ink)
        assert (high + 0.05) / (low + 0.05) >= 4.5  # WCAG AA


def _parts(shade):
    return [int(part) for part in shade[shade.index("(") + 1 : -1].split(",")[:3]]


def _luminance(shade):
    parts = [part / 255 for part in _parts(shade)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_phone_needs_no_sideways_scrolling(visit, report):
    page = visit(report[2], viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    smallest = page.evaluate(
        """() => Math.min(...[...document.querySelectorAll("figure svg text")].map(t =>
             parseFloat(getComputedStyle(t).fontSize) * t.ownerSVGElement.getBoundingClientRect().width / 440))"""
    )
    assert smallest >= 10


def test_hostile_names_stay_text(visit, tmp_path, certs_of, graph):
    certs, truth = certs_of(targets=5)
    path = write_report(
        tmp_path / "r.html", certs, data=graph, truth=truth, title=NASTY, command=NASTY, floor=0.5,
        names=[NASTY] * 5, class_names=[f"{NASTY}{i}" for i in range(4)], settings={NASTY: NASTY},
    )  # fmt: skip
    page = visit(path)
    page.locator("#table tbody button").first.click()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert NASTY in page.inner_text("#command")


def test_a_table_that_is_cut_off_says_that_it_scrolls(visit, tmp_path, certs_of):
    certs, truth = certs_of(noise=us.AddDelete(p_add=0.02, p_delete=0.4))
    where = write_report(tmp_path / "r.html", certs, truth=truth)
    phone = visit(where, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    phone.wait_for_selector("#sideways", state="visible")
    assert "scroll the table sideways" in phone.inner_text("#sideways")
    wide = visit(where, viewport={"width": 1600, "height": 900})
    wide.wait_for_selector("#sideways", state="hidden")


def test_long_names_can_be_told_apart(visit, tmp_path, certs_of):
    certs, _ = certs_of(targets=5)
    names = [f"CC(=O)N[C@@H](CCCCN)C(=O)N[C@@H](Cc1ccc(O)cc1)C(=O)NCC{i}" for i in range(5)]
    page = visit(
        write_report(tmp_path / "r.html", certs, names=names), viewport={"width": 400, "height": 900}
    )
    buttons = page.locator("#table tbody button")
    assert sorted(text[-4:] for text in buttons.all_inner_texts()) == [f"NCC{i}" for i in range(5)]
    assert all(
        buttons.nth(i).evaluate("button => button.scrollWidth <= button.clientWidth") for i in range(5)
    )
    assert sorted(buttons.nth(i).get_attribute("title") for i in range(5)) == names
    page.fill("input[type=search], #search", names[3])
    assert buttons.count() == 1  # found by all of it


@pytest.mark.parametrize("kind", ["all-pairs", "bits", "asymmetric"])
def test_other_threats_and_noise(visit, tmp_path, certs_of, kind):
    noise = us.AddDelete(p_add=0.02, p_delete=0.4) if kind == "asymmetric" else None
    certs, truth = certs_of(targets=6, kind="row" if kind == "asymmetric" else kind, noise=noise)
    ring = type("G", (), {"edge_index": np.array([[0, 1, 2, 3], [1, 2, 3, 0]]), "num_nodes": 4})()
    path = write_report(
        tmp_path / "r.html", certs, truth=truth, data=[ring] * 6 if kind == "all-pairs" else None
    )
    page = visit(path)
    assert page.locator("#picture circle").count() == (4 if kind == "all-pairs" else 0)
    assert (page.locator(".cell").count() > 0) == (kind == "asymmetric")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_on_the_heat_map_can_be_read(visit, tmp_path, certs_of, scheme):
    certs, truth = certs_of(noise=us.AddDelete(p_add=0.02, p_delete=0.3))
    page = visit(write_report(tmp_path / "r.html", certs, truth=truth), color_scheme=scheme)
    pairs = page.evaluate(
        """() => [...document.querySelectorAll("rect.cell + text")].map(t => {
             const share = Number(t.previousElementSibling.style.getPropertyValue("--share"));
             return [share, getComputedStyle(t).fill]; })"""
    )
    blue, paper = page.evaluate(
        """() => ["--blue", "--paper"].map(name => {
             const probe = document.body.appendChild(document.createElement("i"));
             probe.style.color = `var(${name})`;
             return getComputedStyle(probe).color; })"""
    )
    assert len(pairs) > 5
    for share, ink in pairs:
        cell = [share * b + (1 - share) * p for b, p in zip(_parts(blue), _parts(paper), strict=True)]
        high, low = sorted((_luminance(ink), _luminance(f"rgb({','.join(str(round(c)) for c in cell)})")))[
            ::-1
        ]
        assert (high + 0.05) / (low + 0.05) >= 3  # WCAG AA for graphics


def test_every_column_shows_beside_the_picture(visit, tmp_path, certs_of, graph):
    certs, truth = certs_of(noise=us.AddDelete(p_add=0.02, p_delete=0.4))
    page = visit(
        write_report(tmp_path / "r.html", certs, data=graph, truth=truth),
        viewport={"width": 1200, "height": 900},
    )
    hidden = "e => e.scrollWidth - e.clientWidth"
    assert page.locator(".scroll", has=page.locator("#table")).evaluate(hidden) <= 1


def test_the_classes_of_a_picture_are_named_and_a_command_breaks_between_words(
    visit, tmp_path, certs_of, graph
):
    certs, truth = certs_of()
    command = "unswayed certify --edges a.csv " + "--want-size 3 " * 20
    names = [f"class {label}" for label in range(certs.about.classes)]
    where = write_report(
        tmp_path / "r.html", certs, data=graph, truth=truth, class_names=names, command=command.strip()
    )
    page = visit(where, viewport={"width": 500, "height": 900})
    drawn = page.locator("#classes li").all_inner_texts()
    assert drawn
    assert set(drawn) <= set(names)
    assert page.inner_text("#command").split() == command.split()
    lines = page.locator("#command span").evaluate_all("spans => spans.map(s => s.getClientRects().length)")
    assert set(lines) == {1}


def test_what_next_stands_by_itself(visit, tmp_path, certs_of):
    certs, truth = certs_of()
    page = visit(write_report(tmp_path / "r.html", certs, truth=truth, floor=0.2))
    assert page.inner_text(".next").startswith("What next: ")
    assert "What next" not in page.locator(".lead").first.inner_text()
