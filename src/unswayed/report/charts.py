"""Inline SVG charts: no script, no colour that carries meaning alone, colours from the page's own style sheet."""

from html import escape

import numpy as np
import numpy.typing as npt

from unswayed.certificates.presenting import plural
from unswayed.report.summary import Summary
from unswayed.rounding import percent, percent_at_least, round_step

WIDTH, HEIGHT = 440, 270
LEFT, RIGHT, TOP, BOTTOM = 50, 14, 16, 46
HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="3.4" height="6" class="ink"/></pattern></defs>'
)


def _x(place: float, last: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * place / max(last, 1), 1)


def _y(share: float) -> float:
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - share), 1)


def _svg(body: list[str], label: str, height: int = HEIGHT) -> str:
    inside = "".join(body)
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{inside}</svg>'


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(words)}</text>'


def _share_axis() -> list[str]:
    """Horizontal grid lines at every quarter."""
    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(share)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" class="grid"/>')
        parts.append(_text(LEFT - 7, y + 4, f"{share:.0%}", "tick end"))
    return parts


def _steps(shares: list[float], last: int) -> str:
    """A step path: the share at size k is drawn from k to k + 1."""
    path = [f"M{_x(0, last)} {_y(shares[0])}"]
    for size, share in enumerate(shares):
        path.append(f"V{_y(share)}H{_x(min(size + 1, last), last)}")
    return "".join(path)


def curve(summary: Summary) -> str:
    """Certified accuracy at each size, with its band, the floor, the ceiling and, where known, the attacks found."""
    facts, last = summary.curve, summary.top
    shares, low = facts.share.tolist(), facts.low.tolist()
    body = _share_axis()
    back = "".join(
        f"L{_x(min(size + 1, last), last)} {_y(low[size])}L{_x(size, last)} {_y(low[size])}"
        for size in range(last, -1, -1)
    )
    body.append(f'<path d="{_steps(shares, last)}{back}Z" class="band"/>')
    if summary.attack_curve is not None:
        body.append(f'<path d="{_steps(summary.attack_curve.tolist(), last)}" class="attack"/>')
    body.append(f'<path d="{_steps(shares, last)}" class="curve"/>')
    if summary.floor is not None and summary.truth is not None:
        y = _y(summary.floor)
        body.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" class="floor"/>')
        body.append(_text(WIDTH - RIGHT - 4, y - 6, f"floor {percent(summary.floor)}", "mark end floor-text"))
    body += _size_axis(last)
    for size, share in enumerate(shares):
        left, right = _x(size, last), _x(min(size + 1, last), last)
        note = f"k = {size}: {percent(share)}" + (
            "" if summary.doubtful == 0 else f" (at least {percent_at_least(low[size])})"
        )
        body.append(
            f'<rect x="{left}" y="{TOP}" width="{max(right - left, 1):.1f}" height="{HEIGHT - TOP - BOTTOM}" class="hit">'
            f"<title>{note}</title></rect>"
        )
    what = "certified accuracy" if summary.truth is not None else "share certified"
    label = f"{what} falls from {percent(shares[0])} at no change to {percent(shares[-1])} at {last} changes"
    return _svg(body, label)


def _size_axis(last: int) -> list[str]:
    parts = [
        _text(_x(size, last), HEIGHT - BOTTOM + 17, str(size), "tick mid")
        for size in range(0, last + 1, round_step(last))
    ]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "attack size k (changes)", "axis mid"))
    return parts


def bins(summary: Summary, most: int = 26) -> list[tuple[str, int, int]]:
    """(label, smallest K, largest K) of each bar: abstentions first, the last bar open-ended where sizes go on."""
    size = summary.certs.size
    top = min(int(size.max(initial=0)), summary.top)
    wide = -(-(top + 1) // most)
    bars = [("none", -1, -1)]
    for low in range(0, top + 1, wide):
        bars.append((str(low) if wide == 1 else f"{low}–{low + wide - 1}", low, low + wide - 1))
    if int(size.max(initial=0)) > bars[-1][2]:
        bars.append((f">{bars[-1][2]}", bars[-1][2] + 1, int(size.max())))
    return bars


def histogram(summary: Summary) -> str:
    """How many targets have each K; where the truth is known, wrong labels are hatched on top of right ones."""
    size, right, bars = summary.certs.size, summary.right, bins(summary)
    tall = max(int(((size >= low) & (size <= high)).sum()) for _, low, high in bars)
    body = [HATCH, *_count_axis(tall)]
    step = (WIDTH - LEFT - RIGHT) / len(bars)
    for place, (name, low, high) in enumerate(bars):
        inside = (size >= low) & (size <= high)
        good, bad = int((inside & right).sum()), int((inside & ~right).sum())
        x, wide = LEFT + place * step + step * 0.1, step * 0.8
        title = (
            f"no guarantee: {plural(bad, summary.unit)}"
            if low < 0
            else f"K = {name}: {plural(good + bad, summary.unit)}"
        )
        if low >= 0 and summary.truth is not None:
            unknown = int((inside & (summary.truth < 0)).sum())
            title += f", {bad - unknown} with a wrong label" + (
                f", {unknown} of unknown truth" if unknown else ""
            )
        body.append(f"<g><title>{escape(title)}</title>")
        body.append(_bar(x, wide, 0, good, tall, "bar"))
        body.append(_bar(x, wide, good, bad, tall, "bar none" if low < 0 else "bar wrong"))
        body.append("</g>")
        if len(bars) <= 12 or place % (len(bars) // 5) == 0:
            body.append(_text(x + wide / 2, HEIGHT - BOTTOM + 17, name, "tick mid"))
    body.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "certified size K", "axis mid"))
    return _svg(body, f"how many {summary.unit}s have each certified size")


def _bar(x: float, wide: float, base: int, count: int, tall: int, kind: str) -> str:
    if not count:
        return ""
    low, high = _y(base / tall), _y((base + count) / tall)
    return f'<rect x="{x:.1f}" y="{high}" width="{wide:.1f}" height="{low - high:.1f}" class="{kind}"/>'


def _count_axis(tall: int) -> list[str]:
    step = round_step(tall, 4)
    parts = []
    for count in range(0, tall + 1, step):
        y = _y(count / tall)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" class="grid"/>')
        parts.append(_text(LEFT - 7, y + 4, f"{count:,}", "tick end"))
    return parts


def heat_map(summary: Summary) -> str:
    """The share proven against each number of additions and deletions; "" where the two kinds do not differ."""
    shares = _grid_shares(summary)
    if shares is None:
        return ""
    adds, deletes = shares.shape
    step = min((WIDTH - LEFT - RIGHT) / deletes, 300 / adds)
    height = round(TOP + step * adds + BOTTOM)
    body = []
    for a in range(adds):
        y = TOP + step * (adds - 1 - a)
        if a % (1 + adds // 11) == 0:
            body.append(_text(LEFT - 7, y + step / 2 + 4, str(a), "tick end"))
        for r in range(deletes):
            share = float(shares[a, r])
            body.append(
                f'<rect x="{LEFT + step * r:.1f}" y="{y:.1f}" width="{step - 1:.1f}" height="{step - 1:.1f}" '
                f'class="cell" style="--share:{share:.3f}"><title>{a} added and {r} deleted: {percent(share)}</title></rect>'
            )
            if step >= 26:
                body.append(
                    _text(
                        LEFT + step * (r + 0.5) - 0.5,
                        y + step / 2 + 4,
                        percent(share).removesuffix("%").partition(".")[0],
                        _ink(share),
                    )
                )
    for r in range(0, deletes, 1 + deletes // 13):
        body.append(_text(LEFT + step * (r + 0.5), height - BOTTOM + 17, str(r), "tick mid"))
    body.append(_text(LEFT + step * deletes / 2, height - 8, "deleted →", "axis mid"))
    body.append(_text(4, TOP - 4, "added ↑", "axis"))
    return _svg(body, "share of targets proven, by edges added and edges deleted", height)


def _ink(share: float) -> str:
    return f"tick mid {'on-dark' if share > 0.7 else 'on-light'}"


def _grid_shares(summary: Summary) -> npt.NDArray[np.float64] | None:
    """Shares for additions × deletions, cut after the first empty row and column."""
    if summary.grid is None:
        return None
    shares = (summary.grid & summary.right[:, None, None])[summary.known].mean(axis=0)
    rows, columns = int((shares[:, 0] > 0).sum()) + 1, int((shares[0] > 0).sum()) + 1
    return np.asarray(shares[:rows, :columns], np.float64)
