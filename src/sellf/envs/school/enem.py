"""ENEM microdata (INEP): from the published CSV to integer codes, as the paper prepares them."""

import csv
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sellf.errors import InputError

AGE = "TP_FAIXA_ETARIA"
RACE = "TP_COR_RACA"
STATE = "SG_UF_PROVA"
LANGUAGES = "NU_NOTA_LC"
GRADES = ("NU_NOTA_MT", "NU_NOTA_CN", "NU_NOTA_CH")
"""Mathematics, natural sciences and humanities: the numeric features of `school-continuous`."""

FEATURES = (
    AGE,
    "TP_SEXO",
    "TP_ESTADO_CIVIL",
    "TP_ST_CONCLUSAO",
    "TP_ANO_CONCLUIU",
    "TP_ESCOLA",
    "TP_ENSINO",
    "IN_TREINEIRO",
    "TP_DEPENDENCIA_ADM_ESC",
    "TP_LOCALIZACAO_ESC",
    "TP_SIT_FUNC_ESC",
    "TP_LINGUA",
    *(f"Q{question:03d}" for question in range(1, 26)),
)
"""The 37 categorical columns; the paper has 38 with race, which defines the group here."""

SAO_PAULO = "SP"
"""State of the paper's applicants."""
GROUPS = ("Black/brown", "white")
BLANK, OTHER = "blank", "other"
PASS_MARK = 575.0
OLDEST_AGE_CLASS = 14
RARE = 0.10
"""Share of rows below which categories of a feature are pooled into one."""

_GROUP_OF_RACE = {"1": 1, "2": 0, "3": 0}
_NEEDED = (STATE, RACE, *FEATURES, LANGUAGES, *GRADES)


@dataclass(frozen=True)
class People:
    """Applicants as arrays: category codes, group, and the three other grades in [0, 1000]."""

    codes: NDArray[np.uint8]
    """Position of each answer in `categories`, (n, 37)."""
    group: NDArray[np.uint8]
    """Position in `GROUPS`, (n,)."""
    grades: NDArray[np.float64]
    """Grades in the order of `GRADES`, (n, 3)."""


@dataclass(frozen=True)
class EnemRows:
    """Real applicants after the paper's filters, and the meaning of their codes."""

    people: People
    label: NDArray[np.uint8]
    """1 if the languages grade is above 575, (n,)."""
    features: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    """Names of the codes of each feature: frequent ones sorted, then `other` if any was pooled."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of each feature."""
        return tuple(len(names) for names in self.categories)


def read_enem(
    path: str | Path, *, state: str = SAO_PAULO, sample: int | None = 10_000, seed: int = 0
) -> EnemRows:
    """Read microdata with the paper's filters, keeping a random `sample` (None: every row)."""
    path = Path(path)
    if not path.is_file():
        raise InputError(
            f"there is no file {path}: give the path of INEP's microdata, for example "
            "MICRODADOS_ENEM_2020.csv."
        )
    kept: list[list[str]] = []
    draw = random.Random(seed)
    read = usable = 0
    dropped, states = Counter[str](), Counter[str]()
    for line, raw in _needed_values(path):
        read += 1
        states[raw[0].strip()] += 1
        if raw[0].strip() != state:
            dropped[f"outside {STATE} = {state}"] += 1
            continue
        values = [_clean(v, name, path, line) for v, name in zip(raw, _NEEDED, strict=True)]
        if reason := _why_dropped(values):
            dropped[reason] += 1
            continue
        usable += 1
        # Reservoir sampling: the official file has millions of rows, memory holds `sample` of them.
        # Only random() is promised to give the same numbers in every Python version.
        if sample is None or len(kept) < sample:
            kept.append(values)
        elif (slot := int(draw.random() * usable)) < sample:
            kept[slot] = values
    if not kept:
        reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
        raise InputError(
            f"{path}: no rows left of {read} after the filters ({reasons or 'only a header'}). "
            f"Expected applicants of {state} with race 1, 2 or 3, an age class up to "
            f"{OLDEST_AGE_CLASS} and a languages grade{_other_states(states, state)}."
        )
    return code_rows(kept)


def _other_states(states: Counter[str], state: str) -> str:
    """Return a hint on what to type for another state, if the file has any."""
    others = [name for name, _ in states.most_common() if name and name != state]
    return f"; for another state type state={others[0]!r}" if others else ""


def code_rows(rows: Sequence[Sequence[str]]) -> EnemRows:
    """Turn text rows (state, race, the features, the four grades) into codes, label and grades."""
    columns = list(zip(*rows, strict=True))
    answers = [list(column) for column in columns[2 : 2 + len(FEATURES)]]
    answers[0] = [str((int(age) - 1) // 7) for age in answers[0]]
    coded = [
        # The dynamics move people between the two age classes, so both always exist.
        _encode(answers[0], ("0", "1")) if name == AGE else _encode(column, _categories(column))
        for name, column in zip(FEATURES, answers, strict=True)
    ]
    languages, *others = columns[2 + len(FEATURES) :]
    group = np.array([_GROUP_OF_RACE[race] for race in columns[1]], np.uint8)
    grades = np.array([[float(g) if g else np.nan for g in other] for other in others]).T
    return EnemRows(
        people=People(
            codes=np.stack([codes for codes, _ in coded], axis=1),
            group=group,
            grades=impute_grades(grades, group),
        ),
        label=(np.array(languages, np.float64) > PASS_MARK).astype(np.uint8),
        features=FEATURES,
        categories=tuple(names for _, names in coded),
    )


def impute_grades(grades: NDArray[np.float64], group: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Fill missing grades by least squares on the person's other grades and group.

    The label is not used, as it would leak into a feature. People without any grade get the mean of
    their group.
    """
    missing = np.isnan(grades)
    complete = ~missing.any(axis=1)
    if missing.any() and not complete.any():
        raise InputError(
            f"no row has all three grades {', '.join(GRADES)}, so missing ones cannot be filled; "
            "give a file in which some applicants sat all exams"
        )
    filled = grades.copy()
    of_group = np.eye(len(GROUPS))[group]
    for pattern in np.unique(missing[~complete], axis=0):
        who = (missing == pattern).all(axis=1)
        predictors = np.hstack([of_group, grades[:, ~pattern]])
        slopes, *_ = np.linalg.lstsq(predictors[complete], grades[complete], rcond=None)
        filled[np.ix_(who, pattern)] = (predictors[who] @ slopes)[:, pattern]
    return np.clip(filled, 0.0, 1000.0)


def one_hot(codes: NDArray[np.uint8], sizes: Sequence[int]) -> NDArray[np.float64]:
    """Return one column per category of every feature, in order, (n, sum(sizes))."""
    return np.hstack([np.eye(size)[codes[:, i]] for i, size in enumerate(sizes)])


def _categories(column: Sequence[str]) -> tuple[str, ...]:
    """Return the frequent answers, sorted, then `other` if there are rare ones."""
    counts = Counter(column)
    frequent = sorted(name for name, count in counts.items() if count >= RARE * len(column))
    return (*frequent, OTHER) if len(frequent) < len(counts) else tuple(frequent)


def _encode(
    column: Sequence[str], names: tuple[str, ...]
) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    position = {name: code for code, name in enumerate(names)}
    other = position.get(OTHER, 0)
    return np.array([position.get(answer, other) for answer in column], np.uint8), names


def _why_dropped(values: Sequence[str]) -> str:
    """Return the filter of the paper that a cleaned row fails, or an empty string."""
    _, race, age, *_ = values
    if race not in _GROUP_OF_RACE:
        return f"with another {RACE}"
    if age == BLANK or int(age) > OLDEST_AGE_CLASS:
        return f"with an {AGE} above {OLDEST_AGE_CLASS} or blank"
    if not values[_NEEDED.index(LANGUAGES)]:
        return f"without {LANGUAGES}"
    return ""


def _needed_values(path: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the line number and the needed columns of every row, in the order of `_NEEDED`."""
    separator, header = _open_header(path)
    pick = itemgetter(*(header.index(name) for name in _NEEDED))
    # The needed columns are pure ASCII, so Latin-1 reads them correctly from a UTF-8 file too.
    with path.open(encoding="latin-1", newline="") as file:
        reader = csv.reader(file, delimiter=separator)
        next(reader)
        try:
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise InputError(
                        f"{path}, line {reader.line_num}: {len(row)} fields, but the header has "
                        f"{len(header)}; the file may be cut off or have a stray separator"
                    )
                yield reader.line_num, pick(row)
        except csv.Error as error:
            raise InputError(
                f"{path}, line {reader.line_num}: not readable as CSV ({error}); expected INEP's "
                "microdata as published"
            ) from error


def _clean(value: str, name: str, path: Path, line: int) -> str:
    """Return an answer in a uniform spelling: `2.0` becomes `2`, an empty one `blank`."""
    value = value.strip()
    if name == LANGUAGES or name in GRADES:
        if value and not _is_grade(value):
            raise InputError(
                f"{path}, line {line}: {name} is {value!r}, expected a grade from 0 to 1000 with a "
                "decimal point, or nothing"
            )
        return value
    value = value.removesuffix(".0") or BLANK
    if name == AGE and value != BLANK and not value.isdecimal():
        raise InputError(f"{path}, line {line}: {AGE} is {value!r}, expected a class from 1 to 20")
    return value


def _is_grade(value: str) -> bool:
    try:
        return 0.0 <= float(value) <= 1000.0
    except ValueError:
        return False


def _open_header(path: Path) -> tuple[str, list[str]]:
    """Return the separator and the column names, or raise an error that describes the problem.

    The error does not quote the content of the file, as a study may name any file as microdata.
    """
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(0)
        line = file.readline(1_000_000)
    if not line.strip():
        raise InputError(f"{path}: the file is empty; expected a CSV with a header line")
    if start.startswith((b"PK", b"\x1f\x8b")):
        raise InputError(f"{path}: a compressed file; unpack it and give the .csv inside")
    if b"\0" in line or start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(
            f"{path}: not text in UTF-8 or Latin-1 (it looks like UTF-16 or a binary file); "
            "save it as UTF-8 and try again"
        )
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = line.decode("latin-1")
    separator = max(",;", key=text.count)
    header = [name.strip() for name in next(csv.reader([text], delimiter=separator))]
    if len(header) == 1:
        raise InputError(
            f"{path}: only one column found; expected columns separated by ',' or ';' (INEP uses "
            "';')"
        )
    if absent := [name for name in _NEEDED if name not in header]:
        raise InputError(
            f"{path}: missing column{'s' * (len(absent) > 1)} {', '.join(absent)}; found "
            f"{len(header)} columns separated by {separator!r}"
        )
    return separator, header
