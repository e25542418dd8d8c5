"""Lines of a CSV file, with errors that name file, line and column."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mooring.documents.errors import InputError
from mooring.documents.files import sources

# Enough for a petabyte in MiB; what has more digits is no amount of anything here.
_MOST_DIGITS = 12


@dataclass(frozen=True, slots=True)
class CsvRow:
    """A line of a file: its fields by the names in the header."""

    file: str
    line: int
    fields: Mapping[str, str]

    def text(self, field: str) -> str:
        if field not in self.fields:
            raise InputError(self.file, f"there is no column {field!r}")
        return self.fields[field]

    def number(self, field: str) -> int:
        text = self.text(field)
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
            raise self.problem(field, f"not a whole number of at most {_MOST_DIGITS} digits")
        return int(text)

    def problem(self, field: str, what: str) -> InputError:
        return InputError(self.file, f"line {self.line}", field, f"{what}: {self.fields[field]!r}")


def read_rows(path: Path, key: str = "") -> Iterator[CsvRow]:
    """The lines after the header; in field `key` each has a name of its own."""
    (source,) = sources([str(path)])
    lines = csv.reader(source.text.splitlines(), strict=True)
    seen: set[str] = set()
    is_empty = True
    try:
        header = next(lines, [])
        for values in lines:
            if len(values) != len(header):
                many = f"{len(values)} fields, but the header has {len(header)}"
                raise InputError(path, f"line {lines.line_num}", many)
            row = CsvRow(str(path), lines.line_num, dict(zip(header, values, strict=True)))
            if key:
                _expect_name(row, key, seen)
            is_empty = False
            yield row
    except csv.Error as error:
        raise InputError(path, f"line {lines.line_num}", error) from error
    if is_empty:
        raise InputError(path, "there is nothing below the header")


def _expect_name(row: CsvRow, key: str, seen: set[str]) -> None:
    name = row.text(key)
    if not name or name in seen:
        raise row.problem(key, "there is one already" if name else "must not be empty")
    seen.add(name)
