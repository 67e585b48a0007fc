"""A CSV file as a table of text: what cannot be read is one sentence that names the file and the line."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from unswayed.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

MAX_FILE = 2**31  # bytes of one CSV file
RAGGED = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")  # as pandas says it
UNCLOSED = re.compile(r"EOF inside string starting at row (\d+)")


def read_table(path: Path) -> "pd.DataFrame":
    """A CSV file as a table of stripped strings (empty cells are empty strings)."""
    import pandas as pd

    check_size(path)
    try:
        table = pd.read_csv(
            path, dtype=str, keep_default_na=False, skipinitialspace=True, encoding="utf-8-sig"
        )
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text; save it as a UTF-8 CSV file.") from error
    except pd.errors.EmptyDataError as error:
        raise InputError(f"{path} is not a readable CSV file: it is empty.") from error
    except pd.errors.ParserError as error:
        raise InputError(f"{path} is not a readable CSV file: {_unread(str(error))}.") from error
    mark = next((m for m in (";", "\t", "|") if len(table.columns) == 1 and m in table.columns[0]), None)
    if mark is not None:
        told = "a tab" if mark == "\t" else repr(mark)
        raise InputError(
            f"{path} has {told} between its columns; save it with commas between them, and points in numbers."
        )
    if not isinstance(
        table.index, pd.RangeIndex
    ):  # pandas has taken the first column for an index, and moved the others
        raise InputError(
            f"{path} has rows with more values than its header has names; name every column in the first line."
        )
    table.columns = table.columns.str.strip()
    if (twice := table.columns[table.columns.duplicated()]).size:
        raise InputError(f"{path} has two columns {twice[0]!r}; keep one.")
    if table.empty:
        raise InputError(f"{path} has no rows below its header.")
    return table


def _unread(said: str) -> str:
    """What pandas could not read, in words; its lines are counted from 1, its rows from 0."""
    if ragged := RAGGED.search(said):
        expected, line, seen = ragged.groups()
        return f"line {line} has {seen} values, and those before it {expected}; put quotation marks around a value with a comma in it"
    if quoted := UNCLOSED.search(said):
        return f"the quotation mark near line {int(quoted[1]) + 1} is never closed"
    return said.strip()


def check_size(path: Path) -> None:
    """Refuse what is no file, or far too large."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; name the file in it.")
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if path.stat().st_size > MAX_FILE:
        raise InputError(
            f"{path} is larger than {MAX_FILE // 2**30} GB; give features as a sparse .npz file instead."
        )
