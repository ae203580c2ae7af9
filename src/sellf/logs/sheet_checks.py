"""Checks of the parts of a workbook, before openpyxl reads them.

openpyxl skips rows whose numbers do not increase, looks up a shared string from the end of the
table if its index is negative, and uses the last of two cells in the same place. Such damage would
change a result silently. openpyxl also decompresses a file of some kilobytes to any size. The
limits here are those of Excel.
"""

import re
import zipfile
from typing import Any
from xml.parsers import expat

LARGEST = 2**30
"""Largest decompressed size of a workbook, in bytes."""
LARGEST_PART = 2**25
"""Largest size of a part without cells and shared strings, in bytes."""
LARGEST_TEXTS = 2**28
"""Largest size of the table of shared strings, in bytes."""
MOST_ROWS, MOST_COLUMNS, MOST_LETTERS, MOST_FORMATS = 1_048_576, 16_384, 32_767, 2 * 65_490
KINDS = ("n", "s", "b", "e", "str", "inlineStr", "d")
"""Types of cells."""
PLACE = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,6})")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
CHUNK = 2**20
FORMATS = "http://schemas.openxmlformats.org/"
KNOWN = (f"{FORMATS}spreadsheetml/2006/main", f"{FORMATS}package/2006/relationships")
"""Namespaces whose elements are checked; openpyxl skips elements of other namespaces."""
FOREIGN = "foreign"
TEXT = {
    "is": {"t", "r", "rPh", "phoneticPr"},
    "si": {"t", "r", "rPh", "phoneticPr"},
    "r": {"t", "rPr"},
    "rPh": {"t"},
    "t": set[str](),
}
CELLS = {
    "sheetData": {"row"},
    "row": {"c", "extLst"},
    "c": {"f", "v", "is", "extLst"},
    "f": set[str](),
    "v": set[str](),
    **TEXT,
}
"""Elements allowed in an element. openpyxl ignores what follows an element it does not expect."""


class DamagedError(Exception):
    """A workbook is damaged; the message states how."""


def check_parts(packed: zipfile.ZipFile) -> int:
    """Check the parts that are read before a sheet is chosen; return the number of strings."""
    names = packed.namelist()
    if len(set(names)) < len(names):
        raise DamagedError("it holds a part twice")
    if sum(entry.file_size for entry in packed.infolist()) > LARGEST:
        raise DamagedError(f"it has more than {LARGEST:,} bytes when it is unpacked")
    texts: int | None = None
    for entry in packed.infolist():
        if not entry.filename.lower().endswith((".xml", ".rels")):
            continue
        root = _root(packed, entry)
        if root == "sst":
            if texts is not None:
                raise DamagedError("it has two tables of shared strings")
            texts = _texts(packed, entry)
        elif root == "styleSheet":
            _parse(packed, entry, _Formats())
        elif root != "worksheet" and entry.file_size > LARGEST_PART:
            raise DamagedError(f"its part {entry.filename!r} has {entry.file_size:,} bytes")
        elif root == "Relationships":
            _parse(packed, entry, _Relations())
    return texts or 0


def check_sheet(packed: zipfile.ZipFile, name: str, texts: int) -> None:
    """Refuse a sheet with a row or a cell that is out of place or has no valid value.

    Args:
        packed: the workbook.
        name: the name of the sheet's part.
        texts: the number of shared strings in the workbook.
    """
    entry = packed.getinfo(name.removeprefix("/"))
    if _root(packed, entry) != "worksheet":
        raise DamagedError("the sheet is in another format")
    _parse(packed, entry, _Sheet(texts))


class _Handler:
    """Checks while a part is parsed; elements of other namespaces are called `FOREIGN`."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Check the start of an element."""

    def end(self, name: str) -> None:
        """Check the end of an element."""

    def text(self, letters: str) -> None:
        """Check text."""


class _Root(_Handler):
    name = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.name = self.name or name


class _Formats(_Handler):
    number = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.number += name == "xf"
        if self.number > MOST_FORMATS:
            raise DamagedError(f"it has more than {MOST_FORMATS:,} cell formats")


class _Relations(_Handler):
    def __init__(self) -> None:
        self.seen: set[str] = set()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        one = attributes.get("Id")
        if one in self.seen:
            raise DamagedError("two of its parts have the same name")
        if one is not None:
            self.seen.add(one)


class _Nested(_Handler):
    """Elements that may contain certain others only."""

    def __init__(self, children: dict[str, set[str]], within: str) -> None:
        self.children, self.within = children, within
        self.open: list[str] = []
        self.where = "its table of shared strings"

    def start(self, name: str, attributes: dict[str, str]) -> None:
        parent = self.open[-1] if self.open else ""
        allowed = self.children.get(parent)
        inner = name in self.children and name != self.within
        if (name not in allowed) if allowed is not None else inner:
            raise DamagedError(f"{self.where} holds an element that does not belong there")
        self.open.append(name)

    def end(self, name: str) -> None:
        self.open.pop()


class _Texts(_Nested):
    number = letters = 0

    def __init__(self) -> None:
        super().__init__({"sst": {"si", "extLst"}, **TEXT}, "sst")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        super().start(name, attributes)
        if name == "si":
            self.number, self.letters = self.number + 1, 0

    def text(self, letters: str) -> None:
        self.letters += len(letters)
        if self.letters > MOST_LETTERS:
            raise DamagedError(f"a cell has more than {MOST_LETTERS:,} characters")


class _Sheet(_Nested):
    def __init__(self, texts: int) -> None:
        super().__init__(CELLS, "sheetData")
        self.texts = texts
        self.row = self.column = self.letters = 0
        self.kind = "n"
        self.value: str | None = None
        self.formula = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.where = f"row {self.row:,} of the sheet"
        super().start(name, attributes)
        if name == "row":
            self._row(attributes.get("r"))
        elif name == "c":
            self._cell(attributes.get("r"), attributes.get("t", "n"))
        elif name == "f":
            self.formula = True
        elif name == "v":
            if self.value is not None:
                raise DamagedError(f"a cell of row {self.row:,} has two values")
            self.value = ""

    def _row(self, number: str | None) -> None:
        before = self.row
        if number is None:
            self.row = before + 1
        else:
            self.row = int(number) if re.fullmatch("[0-9]{1,8}", number) else 0
        if not before < self.row <= MOST_ROWS:
            raise DamagedError(f"after row {before:,} of the sheet, a row has the wrong number")
        self.column = 0

    def _cell(self, place: str | None, kind: str) -> None:
        before, self.letters, self.kind = self.column, 0, kind
        self.value, self.formula = None, False
        if place is None:
            self.column = before + 1
        else:
            found = PLACE.fullmatch(place)
            there = found is not None and int(found[2]) == self.row
            self.column = _column(found[1]) if found is not None and there else 0
        if not before < self.column <= MOST_COLUMNS:
            raise DamagedError(f"cells of row {self.row:,} are out of order")
        if kind not in KINDS:
            raise DamagedError(f"row {self.row:,} has a cell of an unknown kind")

    def text(self, letters: str) -> None:
        self.letters += len(letters)
        if self.letters > MOST_LETTERS and self.column:
            raise DamagedError(
                f"a cell of row {self.row:,} has more than {MOST_LETTERS:,} characters"
            )
        if self.open[-1] == "v" and self.value is not None:
            self.value += letters

    def end(self, name: str) -> None:
        super().end(name)
        if name != "c":
            return
        value = (self.value or "").strip()
        if self.formula and not value and self.kind != "str":
            raise DamagedError(f"row {self.row:,} has a formula whose value is not stored")
        if self.value is None:
            return
        if self.kind == "n" and value and not NUMBER.fullmatch(value):
            raise DamagedError(f"a cell of row {self.row:,} is not a number")
        if self.kind == "s":
            number = int(value) if re.fullmatch("[0-9]{1,9}", value) else self.texts
            if number >= self.texts:
                raise DamagedError(f"a cell of row {self.row:,} refers to a string that is missing")
        if self.kind == "b" and value not in ("0", "1"):
            raise DamagedError(f"a cell of row {self.row:,} is neither true nor false")


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _root(packed: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str:
    found = _Root()
    _parse(packed, entry, found, most=2**16)
    return found.name


def _texts(packed: zipfile.ZipFile, entry: zipfile.ZipInfo) -> int:
    if entry.file_size > LARGEST_TEXTS:
        raise DamagedError(f"its table of shared strings has {entry.file_size:,} bytes")
    found = _Texts()
    _parse(packed, entry, found)
    return found.number


def _parse(
    packed: zipfile.ZipFile, entry: zipfile.ZipInfo, handler: _Handler, most: int | None = None
) -> None:
    """Parse a part, or its first bytes, in chunks."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def named(name: str) -> str:
        space, _, own = name.rpartition(" ")
        return own if space in KNOWN else FOREIGN

    def refuse(*_: Any) -> None:
        raise DamagedError("it declares entities of its own")

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = lambda name, own: handler.start(named(name), own)
    parser.EndElementHandler = lambda name: handler.end(named(name))
    parser.CharacterDataHandler = handler.text
    with packed.open(entry) as part:
        if most is not None:
            parser.Parse(part.read(most), False)
            return
        while piece := part.read(CHUNK):
            parser.Parse(piece, False)
        parser.Parse(b"", True)
