"""A hundred mistakes that people make with logs as they are: each ends in what to type."""

import gzip

import pytest

from sellf.cli import main

from .test_reading import as_csv, as_duckdb, as_sqlite, as_workbook, text

pytest.importorskip("duckdb")

GOOD = ["--group", "race", "--decision", "frisked", "--accepted-value", "Y", "--seed", "1"]
HIDDEN = [*GOOD, "--outcome", "gun", "--positive-value", "Y", "--hide-rejected-outcomes"]
PROXY = [*GOOD[2:], "--notion", "demographic", "--group-probability"]
FOUND = [*GOOD, "--outcome", "gun", "--positive-value", "Y", "--notion", "predictive-parity"]
EITHER = ["gun | knife" if word == "gun" else word for word in FOUND]
SHARES = [*GOOD, "--notion", "demographic"]
WITHOUT = ["--group", "race", "--notion", "demographic", "--seed", "1"]
CSV = "log.csv"

PLAIN = ["--group", "race", "--decision", "frisked", "--notion", "demographic"]
CONFIGURATIONS = {
    "typo": 'format = 1\n[log]\nfile = "log.csv"\n[columns]\ngroup = "race"\ndecison = "frisked"\n',
    "no_log": 'format = 1\n[columns]\ngroup = "race"\n',
    "no_format": '[log]\nfile = "log.csv"\n',
    "no_toml": '[log\nfile = "log.csv"\n',
    "outside": 'format = 1\nfile = "log.csv"\n',
    "tables": 'format = 1\n[log]\nfile = "log.csv"\n[judge]\nomega = 0.1\n',
}

MISTAKES = [
    (CSV, ["--decision", "frisked"], "type --group"),
    (CSV, ["--group", "race"], "type --decision"),
    (CSV, ["--group", "Race", *WITHOUT[2:], "--decision", "frisked"], "did you mean 'race'"),
    (CSV, [*WITHOUT, "--decision", "frisk"], "did you mean 'frisked'"),
    (CSV, [*WITHOUT, "--decision", "frisked"], "--accepted-value"),
    (CSV, [*WITHOUT, "--decision", "frisked", "--accepted-value", "yes"], "it is 'N', 'Y'"),
    (CSV, [*WITHOUT, "--decision", "age", "--accepted-value", "20"], "--rejected-value"),
    (CSV, [*SHARES, "--rejected-value", "Y"], "name it once"),
    (CSV, [*SHARES, "--rejected-value", "no"], "type --rejected-value with one of these"),
    (CSV, [*WITHOUT, "--decision", "age"], "leave out rows that are neither with --where"),
    (CSV, FOUND, "--hide-rejected-outcomes"),
    (CSV, [*FOUND, "--hide-rejected-outcomes", "--trust-rejected-outcomes"], "contradict"),
    (CSV, [*GOOD, "--outcome", "gun", "--hide-rejected-outcomes"], "--positive-value"),
    (CSV, [*GOOD, "--outcome", "gun | rifle", "--notion", "accuracy"], "no column 'rifle'"),
    (CSV, [*GOOD, "--outcome", "gun | gun", "--notion", "accuracy"], "name each column once"),
    (CSV, [*GOOD, "--outcome", "gun |", "--notion", "accuracy"], "name each column once"),
    (CSV, [*EITHER, "--feature", "knife"], "leave it out"),
    (CSV, [*SHARES, "--where", "year == "], "a number, or a word in single quotes"),
    (CSV, [*SHARES, "--where", "year = twenty"], "put words in single quotes"),
    (CSV, [*SHARES, "--where", "jahr = 2014"], "no column 'jahr' (where)"),
    (CSV, [*SHARES, "--where", "year = 1999"], "leaves no row"),
    (CSV, [*SHARES, "--where", "race > 3"], "holds words"),
    (CSV, [*SHARES, "--where", "year = 'abc'"], "compare it with a value of that type"),
    (CSV, [*SHARES, "--where", "year = 2014; drop table log"], "cannot be read from"),
    (CSV, [*SHARES, "--where", "read_csv('x') = 1"], "was expected"),
    (CSV, [*SHARES, "--where", "(year = 2014"], "')' was expected"),
    (CSV, [*SHARES, "--where", "year in 2014"], "'(' was expected"),
    (CSV, [*SHARES, "--where", ""], "give a condition"),
    (CSV, [*SHARES, "--where", "not " * 60 + "year = 2014"], "simplify it"),
    (CSV, [*SHARES, "--groups", "Black,White"], "it has 'B'"),
    (CSV, [*SHARES, "--groups", "Black=B,Black=W"], "name groups once each"),
    (CSV, [*SHARES, "--groups", "x=B,y=B"], "puts 'B' into two groups"),
    (CSV, [*SHARES, "--groups", "B,,W"], "with commas between them"),
    (CSV, [*SHARES, "--groups", "B"], "Name another column with --group"),
    (CSV, [*SHARES, "--other", "rest"], "--groups Black,White --other"),
    (CSV, [*SHARES, "--groups", "B", "--other", "B"], "give another name"),
    (CSV, [*SHARES, "--score", "score"], "--score-range"),
    (CSV, [*SHARES, "--score", "score", "--score-range", "850:300"], "300:850"),
    (CSV, [*SHARES, "--score", "score", "--score-range", "300"], "300:850"),
    (CSV, [*SHARES, "--score", "score", "--score-range", "400:850"], "type its real ends"),
    (CSV, [*SHARES, "--score-range", "300:850"], "--score"),
    (CSV, [*SHARES, "--score", "race"], "every row needs a number"),
    (CSV, [*SHARES, "--bands", "age=62,25"], "in rising order"),
    (CSV, [*SHARES, "--bands", "age"], "--bands AGE=25,62"),
    (CSV, [*SHARES, "--bands", "age=25"], "name it with --group"),
    (CSV, [*SHARES, "--bands", "race=25"], "it needs numbers"),
    (CSV, [*SHARES, "--date-format", "DD/MM/YYYY"], "--time or --decided-on"),
    (CSV, [*SHARES, "--time", "day", "--by", "month", "--date-format", "%d"], "DD/MM/YYYY"),
    (
        CSV,
        [*SHARES, "--time", "day", "--by", "month", "--date-format", "DD/MM/YYYY"],
        "is not written",
    ),
    (CSV, [*SHARES, "--time", "gun", "--by", "month"], "give dates"),
    (CSV, [*SHARES, "--encoding", "klingon"], "cp1252"),
    ("latin.csv", SHARES, "--encoding cp1252"),
    ("latin.csv", [*SHARES, "--encoding", "utf-16"], "type another --encoding"),
    (CSV, [*SHARES, "--separator", ";;"], "give one character"),
    (CSV, [*SHARES, "--separator", ";"], "type --separator ','"),
    (CSV, [*SHARES, "--sheet", "stops"], "leave --sheet out"),
    (CSV, [*SHARES, "--query", "select 1"], "leave --query out"),
    ("log.xlsx", SHARES, "type --sheet"),
    ("log.xlsx", [*SHARES, "--sheet", "Stops"], "type --sheet with one of these"),
    ("broken.xlsx", SHARES, "save it again as .xlsx"),
    ("log.sqlite", [*SHARES, "--table", "loans"], "type --table"),
    ("log.sqlite", [*SHARES, "--query", "delete from stops"], "give one SELECT"),
    ("log.duckdb", [*SHARES, "--query", "copy stops to 'x.csv'"], "give one SELECT"),
    ("log.duckdb", [*SHARES, "--table", "a", "--query", "b"], "give one of them"),
    ("log.ods", SHARES, ".xlsx"),
    ("truncated.csv.gz", SHARES, "cannot be read"),
    (CSV, [*SHARES, "--words", "searched"], "searched,found"),
    (CSV, [*SHARES, "--fail-on", "fair"], "--fail-on unfair"),
    (CSV, [*SHARES, "--yes"], "--init"),
    ("audit.toml", [], "--init"),
    # Words among numbers, and decimal commas.
    ("words.csv", [*PLAIN, "--score", "score"], "--missing-value '.' --where \"score is not"),
    ("commas.csv", [*PLAIN, "--score", "score"], "--decimal ','"),
    (CSV, [*SHARES, "--decimal", ",,"], "--decimal"),
    (CSV, [*SHARES, "--quote", "''"], "--quote"),
    # Whom groups are compared with.
    (CSV, [*SHARES, "--reference", "Green"], "type --reference with one of them"),
    (CSV, [*SHARES, "--unknown-group", "Z"], "type --unknown-group with one of them"),
    (CSV, [*HIDDEN, "--anytime", "--panel"], "leave out --anytime, or --panel"),
    # Who decided.
    (CSV, [*HIDDEN, "--examiner", "officer"], "Type --examiner with one of these"),
    (CSV, [*HIDDEN, "--examiner", "frisked"], "the decision itself: type --examiner"),
    (CSV, [*HIDDEN, "--examiner", "race"], "the group itself: type --examiner"),
    # What rows stand for.
    (CSV, [*HIDDEN, "--weight", "people"], "Type --weight with one of these"),
    (CSV, [*HIDDEN, "--weight", "knife"], "name a column of numbers"),
    (CSV, [*HIDDEN, "--weight", "age", "--ladder"], "leave out --ladder"),
    (CSV, [*HIDDEN, "--weight", "age", "--anytime"], "--weight does not go with --anytime"),
    (CSV, [*HIDDEN, "--weight", "age", "--person", "day"], "--weight does not go with --person"),
    # Circumstances.
    (CSV, [*SHARES, "--within", "precinct"], "Type --within with one of these"),
    (CSV, [*SHARES, "--within", "frisked"], "the decision itself: type --within"),
    (CSV, [*SHARES, "--within", "race"], "the group itself: type --within"),
    (CSV, [*SHARES, "--within", "age,,year"], "give a column's name"),
    (CSV, [*SHARES, "--within", "year", "--person", "day"], "does not go with --person"),
    # Groups that are not recorded.
    (CSV, [*PROXY, "p_black"], "Type --group-probability with one of these"),
    (CSV, [*PROXY, "age"], "divide per cents by 100"),
    (CSV, [*PROXY, "race"], "name a column of numbers"),
    (CSV, [*PROXY, "score", "--group", "race"], "both named"),
    (CSV, [*PROXY, "score", "--panel"], "leave out --panel"),
    (CSV, [*PROXY, "score", "--time", "day", "--by", "month"], "does not go with --by"),
    # Two logs, and the test on known outcomes.
    (CSV, [*SHARES, "--compare", "gone.csv"], "there is no file gone.csv"),
    (CSV, [*SHARES, "--compare", "other.csv"], "no column 'race' (group)"),
    (CSV, [*SHARES, "--compare", CSV, "--mask-test"], "type one of them"),
    (CSV, [*SHARES, "--compare", CSV, "--html", "x.html"], "leave --html out"),
    (CSV, [*HIDDEN, "--mask-test", "--pdf", "x.pdf"], "leave --pdf out"),
    (CSV, [*HIDDEN, "--mask-test", "--repeats", "0"], "simulate 1 log at least"),
    (CSV, [*SHARES, "--mask-test"], "--mask-test hides outcomes"),
    # Dates, and what is asked.
    (CSV, [*SHARES, "--by", "month"], "with --time"),
    (CSV, [*SHARES, "--time", "day", "--date-format", "MDDYYYY"], "--by month"),
    (CSV, [*HIDDEN, "--decided-on", "day"], "--matures-after 365d"),
    (CSV, [*HIDDEN, "--decided-on", "day", "--matures-after", "a year"], "52w, 12mo or 1y"),
    (CSV, GOOD, "Type --outcome"),
    (CSV, [*HIDDEN, "--propensity", "score"], "a chance lies between 0 and 1"),
    (CSV, [*GOOD, "--notion", "fairness"], "It is one of"),
    # Configurations.
    ("typo.toml", [], "Did you mean decision?"),
    ("no_log.toml", [], 'write file = "loans.csv" under [log]'),
    ("no_format.toml", [], "format = 1"),
    ("no_toml.toml", [], "not TOML"),
    ("outside.toml", [], "put it under [log]"),
    ("tables.toml", [], "it may have [log], [columns], [audit]"),
    ("postgresql://example.org/x", SHARES, "install_extension"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("wrong")
    for write in (as_csv, as_duckdb, as_sqlite, as_workbook):
        write(made)
    (made / "latin.csv").write_bytes(text().encode("latin-1"))
    (made / "other.csv").write_text(text().replace("race", "ethnicity"), encoding="utf-8")
    rows = [(name, i % 3 % 2, i) for i, name in enumerate("BW" * 60)]
    words = "".join(f"{g},{d},{'.' if i % 9 == 0 else i / 200}\n" for g, d, i in rows)
    commas = "".join(f"{g};{d};0,{100 + i}\n" for g, d, i in rows)
    (made / "words.csv").write_text("race,frisked,score\n" + words)
    (made / "commas.csv").write_text("race;frisked;score\n" + commas)
    for name, content in CONFIGURATIONS.items():
        (made / f"{name}.toml").write_text(content)
    (made / "broken.xlsx").write_bytes(b"PK\x03\x04 no workbook")
    (made / "log.ods").write_bytes(b"x")
    (made / "truncated.csv.gz").write_bytes(gzip.compress(text().encode())[:-200])
    return made


def test_there_are_a_hundred():
    assert len(MISTAKES) >= 100


@pytest.mark.parametrize(("name", "options", "said"), MISTAKES, ids=lambda x: str(x)[-40:])
def test_a_mistake_ends_in_what_to_type(name, options, said, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["audit", name, *options]) == 2
    told = capsys.readouterr().err
    assert told.startswith("sellf: ")
    assert said in told
    assert "Traceback" not in told
    assert len(told) < 900
