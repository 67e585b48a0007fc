"""Pages whose prose is written by hand and whose figures come from rows: one function puts the second into the first."""

from collections.abc import Mapping
from pathlib import Path


def fill(page: Path, parts: Mapping[str, str]) -> Path:
    """Put each text between the marks `<!-- name -->` and `<!-- end name -->` of a page, and leave the rest alone.

    A page that is not there yet is made of its marks; a text whose marks somebody took out is not shown.
    """
    marks = {name: (f"<!-- {name} -->", f"<!-- end {name} -->") for name in parts}
    whole = page.read_text() if page.exists() else "".join(f"{a}\n{z}\n" for a, z in marks.values())
    for name, (begin, end) in marks.items():
        if begin in whole and end in whole:
            before, rest = whole.split(begin)
            whole = f"{before}{begin}\n\n{parts[name]}\n{end}{rest.split(end)[1]}"
    page.write_text(whole)
    return page
