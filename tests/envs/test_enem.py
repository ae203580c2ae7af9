"""Reading ENEM microdata: both formats, the paper's coding, and files that are wrong."""

import random
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sellf.envs.school.enem import FEATURES, GRADES, impute_grades, one_hot, read_enem
from sellf.envs.school.law import fit_law, fit_logistic, look_up, shifted_to

COLUMNS = ("NU_ANO", "SG_UF_PROVA", "TP_COR_RACA", *FEATURES, "NU_NOTA_LC", *GRADES)
Row = dict[str, str]


def applicant(**changes: str) -> Row:
    values = dict.fromkeys(COLUMNS, "A")
    values |= {"NU_ANO": "2020", "SG_UF_PROVA": "SP", "TP_COR_RACA": "1", "TP_FAIXA_ETARIA": "2"}
    values |= dict.fromkeys(("NU_NOTA_LC", *GRADES), "500.5")
    return values | changes


def random_applicants(n: int, seed: int = 0) -> list[Row]:
    draw = random.Random(seed)
    return [
        applicant(
            TP_COR_RACA=draw.choice("123"),
            TP_FAIXA_ETARIA=str(draw.randint(1, 14)),
            TP_SEXO=draw.choice("MF"),
            Q006=draw.choice("ABBCCC"),
            NU_NOTA_LC=str(draw.randint(450, 700)),
            **{grade: str(draw.randint(400, 700)) for grade in GRADES},
        )
        for _ in range(n)
    ]


def write(
    path: Path,
    rows: list[Row],
    *,
    separator: str = ",",
    encoding: str = "utf-8",
    columns: tuple[str, ...] = COLUMNS,
) -> Path:
    lines = [separator.join(columns), *(separator.join(r[c] for c in columns) for r in rows)]
    path.write_text("\n".join(lines) + "\n", encoding=encoding)
    return path


def test_filters_group_label_and_age(tmp_path: Path) -> None:
    people = [
        applicant(NU_NOTA_LC="575.0"),
        applicant(NU_NOTA_LC="575.1", TP_COR_RACA="2", TP_FAIXA_ETARIA="7.0"),
        applicant(NU_NOTA_LC="900", TP_COR_RACA="3", TP_FAIXA_ETARIA="8"),
        applicant(TP_FAIXA_ETARIA="14"),
        applicant(SG_UF_PROVA="RJ"),
        applicant(TP_COR_RACA="4"),
        applicant(TP_COR_RACA=""),
        applicant(TP_FAIXA_ETARIA="15"),
        applicant(TP_FAIXA_ETARIA=""),
        applicant(NU_NOTA_LC=""),
    ]
    rows = read_enem(write(tmp_path / "a.csv", people))
    assert rows.people.group.tolist() == [1, 0, 0, 1]
    assert rows.label.tolist() == [0, 1, 1, 0]
    assert rows.people.codes[:, 0].tolist() == [0, 0, 1, 1]
    assert rows.people.codes.shape == (4, 37)
    assert rows.people.codes.dtype == np.uint8


def test_blanks_are_a_category_and_rare_answers_are_pooled(tmp_path: Path) -> None:
    answers = [*("" for _ in range(10)), *("2.0" for _ in range(40)), *("1" for _ in range(42))]
    answers += ["3"] * 5 + ["4"] * 3
    people = [applicant(TP_ENSINO=answer) for answer in answers]
    rows = read_enem(write(tmp_path / "a.csv", people))
    feature = rows.features.index("TP_ENSINO")
    assert rows.categories[feature] == ("1", "2", "blank", "other")
    assert np.bincount(rows.people.codes[:, feature]).tolist() == [42, 40, 10, 8]
    assert rows.categories[rows.features.index("Q001")] == ("A",)
    assert rows.categories[0] == ("0", "1"), "both age classes exist even if one is unseen"


def test_the_official_format_reads_the_same(tmp_path: Path) -> None:
    people = random_applicants(50)
    plain = read_enem(write(tmp_path / "plain.csv", people))
    extra = [person | {"NU_INSCRICAO": "1", "NO_MUNICIPIO_PROVA": "São Paulo"} for person in people]
    columns = ("NU_INSCRICAO", "NO_MUNICIPIO_PROVA", *reversed(COLUMNS))
    official = write(
        tmp_path / "official.csv", extra, separator=";", encoding="latin-1", columns=columns
    )
    marked = write(tmp_path / "marked.csv", extra, encoding="utf-8-sig", columns=columns)
    for other in (read_enem(official), read_enem(marked)):
        assert other.categories == plain.categories
        np.testing.assert_array_equal(other.people.codes, plain.people.codes)
        np.testing.assert_array_equal(other.people.grades, plain.people.grades)
        np.testing.assert_array_equal(other.label, plain.label)


def test_a_large_file_is_sampled_the_same_way_every_time(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", random_applicants(300))
    first, again = read_enem(path, sample=100), read_enem(path, sample=100)
    assert len(first.label) == 100
    np.testing.assert_array_equal(first.people.grades, again.people.grades)
    other = read_enem(path, sample=100, seed=1)
    assert not np.array_equal(first.people.grades, other.people.grades)
    assert len(read_enem(path, sample=None).label) == 300


def test_missing_grades_follow_the_others_and_the_group() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 500).astype(np.uint8)
    humanities = rng.uniform(400, 700, 500)
    grades = np.stack([humanities + 10.0 * group, 0.5 * humanities, humanities], axis=1)
    holes = grades.copy()
    holes[:50, :2] = np.nan
    holes[50:60] = np.nan
    filled = impute_grades(holes, group)
    np.testing.assert_allclose(filled[:50], grades[:50])
    for row in range(50, 60):
        same = (group == group[row]) & (np.arange(500) >= 60)
        np.testing.assert_allclose(filled[row], grades[same].mean(axis=0))
    np.testing.assert_array_equal(filled[60:], grades[60:])


def test_one_hot_and_look_up_agree(tmp_path: Path) -> None:
    rows = read_enem(write(tmp_path / "a.csv", random_applicants(80)))
    columns = one_hot(rows.people.codes, rows.sizes)
    assert columns.shape == (80, sum(rows.sizes))
    assert (columns.sum(axis=1) == 37).all()
    weights = np.random.default_rng(0).normal(size=(sum(rows.sizes) + 2, 3))
    design = np.hstack([columns, np.eye(2)[rows.people.group]])
    np.testing.assert_allclose(look_up(rows.people, rows.sizes, weights), design @ weights)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty", b"", "empty"),
        ("lines", b"\n\n", "empty"),
        ("zip", b"PK\x03\x04rest", "compressed.*unpack"),
        ("utf16", "NU_ANO,Q001\n".encode("utf-16"), "UTF-16.*save it as UTF-8"),
        ("binary", b"NU_ANO\0\1\2,Q001\n", "not text"),
        ("tabs", b"NU_ANO\tQ001\n2020\tA\n", "only one column found; .*',' or ';'"),
        (
            "short",
            b"NU_ANO;Q001\n2020;A\n",
            "missing columns SG_UF_PROVA.*found 2 columns",
        ),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / f"{name}.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_enem(path)
    assert name in str(caught.value)


def test_one_missing_column_is_named(tmp_path: Path) -> None:
    columns = tuple(c for c in COLUMNS if c != "Q006")
    path = write(tmp_path / "a.csv", [applicant()], columns=columns)
    with pytest.raises(ValueError, match="missing column Q006; found 43 columns"):
        read_enem(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"SG_UF_PROVA": "RJ"}, "no rows left of 1 .*1 outside SG_UF_PROVA = SP.*state="),
        ({"TP_COR_RACA": "5"}, "no rows left of 1 .*1 with another TP_COR_RACA"),
        ({"NU_NOTA_LC": ""}, "no rows left of 1 .*1 without NU_NOTA_LC"),
        ({"NU_NOTA_MT": "five"}, "line 2: NU_NOTA_MT is 'five', expected a grade"),
        ({"NU_NOTA_MT": "nan"}, "line 2: NU_NOTA_MT is 'nan'"),
        ({"NU_NOTA_LC": "1500"}, "line 2: NU_NOTA_LC is '1500'"),
        ({"TP_FAIXA_ETARIA": "old"}, "line 2: TP_FAIXA_ETARIA is 'old', expected a class"),
        ({"Q001": "A,B"}, "line 2: 45 fields, but the header has 44"),
    ],
)
def test_wrong_rows_are_named(tmp_path: Path, changes: Row, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_enem(write(tmp_path / "a.csv", [applicant(**changes)]))


def test_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no rows left of 0 .*only a header"):
        read_enem(write(tmp_path / "a.csv", []))


def test_grades_nobody_has_cannot_be_filled(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", [applicant(NU_NOTA_MT="")])
    with pytest.raises(ValueError, match="no row has all three grades"):
        read_enem(path)


@pytest.mark.parametrize("penalty", [0.1, 1.0, 10.0])
def test_fit_logistic_is_scikit_learns(penalty: float) -> None:
    rng = np.random.default_rng(0)
    design = np.hstack([np.eye(4)[rng.integers(0, 4, 800)], rng.normal(size=(800, 5))])
    label = rng.random(800) < 1 / (1 + np.exp(-2.0 - design @ rng.normal(size=9)))
    intercept, weights = fit_logistic(design, label, penalty=penalty)
    theirs = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000).fit(design, label)
    np.testing.assert_allclose(weights, theirs.coef_[0], atol=1e-4)
    assert intercept == pytest.approx(theirs.intercept_[0], abs=1e-4)


def test_fit_logistic_refuses_one_sided_labels_and_no_penalty() -> None:
    with pytest.raises(ValueError, match="expected both 0 and 1"):
        fit_logistic(np.ones((3, 1)), np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match="penalty is 0"):
        fit_logistic(np.ones((2, 1)), np.array([0, 1]), penalty=0)


def test_a_shifted_law_has_the_base_rate_asked_for(tmp_path: Path) -> None:
    rows = read_enem(write(tmp_path / "a.csv", random_applicants(400)))
    for with_grades in (False, True):
        law = fit_law(rows, with_grades=with_grades)
        assert law.probability(rows.people, rows.sizes).mean() == pytest.approx(rows.label.mean())
        moved = shifted_to(law, rows.people, rows.sizes, 0.2)
        assert moved.probability(rows.people, rows.sizes).mean() == pytest.approx(0.2)
        np.testing.assert_array_equal(moved.weights, law.weights)
