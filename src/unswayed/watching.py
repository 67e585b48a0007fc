"""What is happening, said while it happens: the engine, why no faster one, answers a second, and the time left."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

Reach = Callable[[Any], str]
Steps = Callable[[int, int, str], None]  # how many are done, of how many, and a word on them
_ceiling_said: ContextVar[bool] = ContextVar("ceiling said", default=False)

LONG = 2.0  # seconds from which on a run is worth words
FIRST = 0.5  # seconds after which its length can be told


class Watch:
    """Told of the engine and of answers as they come; says in one line what will take long, and shows how far it has come."""

    def __init__(self, title: str, answers: int, wanted: bool, reach: Reach | None = None) -> None:
        self.title, self.answers, self.wanted, self.reach = title, answers, wanted, reach
        self.always = False  # also of what is over soon
        self.engine: Any = None
        self.bar: Any = None
        self.done, self.begin = 0, time.monotonic()
        self.first: tuple[int, float] | None = (
            None  # answers and time when the first came: what warms up is over then
        )

    def meet(self, engine: Any) -> None:
        """The engine that will answer; the clock starts when it is ready."""
        self.engine, self.begin = engine, time.monotonic()

    def hear(self, notes: Mapping[str, Any]) -> None:
        """What the first answers from elsewhere tell of the engine; the clock starts when it began to answer."""
        if self.engine is None and "engine" in notes:
            told = {"name": notes["engine"], "why": notes.get("why", ""), "threads": notes.get("threads", "")}
            self.meet(SimpleNamespace(**told, classes=notes.get("classes")))
            self.begin -= notes.get("spent", {}).get("seconds", 0.0)

    def __call__(self, answers: int) -> None:
        """Move on by this many answers."""
        self.done = min(self.done + answers, self.answers)
        if not self.wanted:
            return
        now = time.monotonic()
        self.first = self.first or (self.done, now)
        rate, spent = self.rate(now), now - self.begin
        warm = self.done > self.first[0] or self.done == self.answers or spent > LONG
        long = spent > FIRST and spent + (self.answers - self.done) / rate > LONG
        if self.bar is None and warm and (long or self.always):
            self._say(self.sentence(rate))
            self.bar = _bar(self.title, self.answers, " answers")
        if self.bar is not None:
            self.bar.update(self.done - self.bar.n)

    def rate(self, now: float) -> float:
        """Answers a second, since the first came where others have come since."""
        answers, since = self.first if self.first and self.done > self.first[0] else (0, self.begin)
        return max(self.done - answers, 1e-3) / max(now - since, 1e-9)

    def sentence(self, rate: float) -> str:
        """Who answers, why nobody faster, how fast, and how long it will take."""
        told = [f"{rate:,.0f} answers a second" if rate >= 10 else f"{rate:.2g} answers a second"]
        told.append(f"about {duration((self.answers - self.done) / rate)} left")
        if self.engine is None:
            return f"{self.title}: {', '.join(told)}."
        why = f" No faster engine: {self.engine.why.rstrip('.')}." if self.engine.why else ""
        number = self.engine.threads
        who = f"the {self.engine.name} engine, {number} thread{'s' * (number != '1')}"
        reach = "" if self.reach is None or _ceiling_said.get() else self.reach(self.engine)
        return f"{self.title}: {who}, {', '.join(told)}.{reach}{why}"

    def _say(self, sentence: str) -> None:
        print(sentence, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the bar away, and forget the engine, which may fill a card."""
        self.engine = None
        if self.bar is not None:
            self.bar.close()


def _bar(title: str, total: int, unit: str) -> Any:
    """A line that is written over about once a second, in a terminal, a notebook or a log."""
    from tqdm import tqdm

    return tqdm(
        total=total,
        desc=title,
        unit=unit,
        mininterval=1.0,
        leave=False,
        file=sys.stderr,
        smoothing=0.1,
    )


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(7), duration(200), duration(8000)
    ('7 s', '3 min', '2.2 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def watching(
    progress: bool | None, answers: int, title: str = "polling", reach: Reach | None = None
) -> Iterator[Watch]:
    """A watch over so many answers: on standard error in a terminal or a notebook, of what takes long; if `progress` is true,
    anywhere and of every poll.

    `reach` says, once the engine is known, how far certificates of these answers can reach.
    """
    shown = progress if progress is not None else _somebody_looks()
    watch = Watch(title, answers, bool(shown and answers), reach)
    watch.always = bool(progress and reach)
    try:
        yield watch
    finally:
        watch.close()


@contextmanager
def steps_shown(title: str, progress: Steps | None) -> Iterator[Steps | None]:
    """Whom to tell of steps: `progress`, or else, in a terminal or a notebook, a line that appears once they take long."""
    if progress is not None or not _somebody_looks():
        yield progress
        return
    bars: list[Any] = []
    begin = time.monotonic()

    def told(step: int, steps: int, message: str) -> None:
        if not bars and time.monotonic() - begin > LONG and step < steps:
            bars.append(_bar(title, steps, " steps"))
        for bar in bars:
            bar.total = steps
            bar.set_postfix_str(message, refresh=False)
            bar.update(step - bar.n)

    try:
        yield told
    finally:
        for bar in bars:
            bar.close()


@contextmanager
def ceiling_said() -> Iterator[None]:
    """While it lasts, how far certificates can reach is not said: whoever asks has said it, at a level of their own."""
    before = _ceiling_said.set(True)
    try:
        yield
    finally:
        _ceiling_said.reset(before)


def _somebody_looks() -> bool:
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"
