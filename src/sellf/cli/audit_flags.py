"""The flags of `sellf audit`, grouped by topic; a field's docstring is its help.

A flag has the name of the corresponding argument of `sellf.audit` and of the entry in a
configuration file, except that the flag `feature` corresponds to `features`.
"""

from dataclasses import dataclass
from typing import Annotated

import tyro

from sellf.cli.arguments import Column, Columns, File, Flag, Text, Values


@dataclass(frozen=True)
class ColumnFlags:
    """The columns of the log, and what their values mean."""

    group: Columns = ()
    """the column that names each person's group; repeat for a second column."""
    decision: Column = None
    """the column of decisions, 1 for accepted and 0 for rejected; 'a | b' means accepted where
    either column does."""
    outcome: Column = None
    """the column of outcomes, 1 for good and 0 for bad, empty for the rejected; 'a | b' means good
    where either column does."""
    propensity: Column = None
    """the column of propensities: the probability with which each person was to be accepted."""
    score: Column = None
    """the column of predictions: the probability of a good outcome, from a model that was fitted on
    other people."""
    feature: Columns = ()
    """a column to estimate propensities from, if they are not known; repeat for more."""
    time: Column = None
    """the column with the time of each decision, by which rows are ordered and put into periods."""
    person: Column = None
    """the column that identifies the person in each row, if people have several rows."""
    decided_on: Column = None
    """the column with the date of each decision, for --matures-after."""
    accepted_value: Values = ()
    """a value of the decision that means accepted, if that is not 1; repeat for more."""
    rejected_value: Values = ()
    """a value of the decision that means rejected, if there are several."""
    positive_value: Values = ()
    """a value of the outcome that is good, if that is not 1; repeat for more."""
    negative_value: Values = ()
    """a value of the outcome that is bad, if there are several; alone: all others are good."""
    missing_value: Values = ()
    """a word or number that marks a missing value, such as NA or -1."""
    score_range: Annotated[Text, tyro.conf.arg(metavar="LOW:HIGH")] = None
    """the scale of the score, e.g. 300:850."""
    score_is_risk: Flag = False
    """the score is the probability of a bad outcome."""
    date_format: Annotated[Text, tyro.conf.arg(metavar="FORMAT")] = None
    """how dates are written: DD/MM/YYYY, MDDYYYY, YYYYMMDD, ..."""
    bands: Annotated[Values, tyro.conf.arg(metavar="COLUMN=25,62")] = ()
    """cut a column of numbers into bands, to be used as groups."""


@dataclass(frozen=True)
class ReadingFlags:
    """How the log is read, and which of its rows are used."""

    where: Annotated[Text, tyro.conf.arg(metavar="CONDITION")] = None
    """use these rows only: "year = 2014 and not sex = 'Z'"."""
    groups: Annotated[Text, tyro.conf.arg(metavar="NAMES")] = None
    """use these groups only: Black,White; renamed or merged: Black=B,Hispanic=P+Q."""
    other: Annotated[Text, tyro.conf.arg(metavar="NAME")] = None
    """merge all other groups into one with this name."""
    hide_rejected_outcomes: Flag = False
    """ignore the outcomes that the log holds for the rejected."""
    trust_rejected_outcomes: Flag = False
    """use the outcomes that the log holds for the rejected."""
    encoding: Annotated[Text, tyro.conf.arg(metavar="NAME")] = None
    """the encoding of a CSV file that is not UTF-8: cp1252, latin-1, utf-16, ..."""
    separator: Annotated[Text, tyro.conf.arg(metavar="LETTER")] = None
    """the separator of a CSV file, if it is not detected automatically."""
    quote: Annotated[Text, tyro.conf.arg(metavar="LETTER")] = None
    """the quote character of a CSV file, if not "."""
    decimal: Annotated[Text, tyro.conf.arg(metavar="LETTER")] = None
    """the decimal separator of a CSV file: , for 0,5."""
    sheet: Annotated[Text, tyro.conf.arg(metavar="NAME")] = None
    """the sheet of an .xlsx file (default: the first)."""
    table: Annotated[Text, tyro.conf.arg(metavar="NAME")] = None
    """the table of a database."""
    query: Annotated[Text, tyro.conf.arg(metavar="SQL")] = None
    """the SQL query that selects the log from a database."""


@dataclass(frozen=True)
class JudgeFlags:
    """The notion of fairness, the tolerance, and how intervals are computed."""

    notion: str = "opportunity"
    """qualification, accuracy, opportunity, demographic, predictive-parity,
    false-positive-rate, equalized-odds, or all."""
    omega: float = 0.05
    """the largest disparity that is tolerated."""
    delta: float = 0.05
    """the probability with which the interval may miss (1 - confidence level)."""
    overlap: Annotated[float | None, tyro.conf.arg(metavar="P", help_behavior_hint="")] = None
    """the propensity below which nothing is concluded from the accepted about the rejected."""
    model: str = "boosting"
    """the model of propensities that are not known: boosting or logistic."""
    by: Text = None
    """day, week, month, quarter or year: also audit each of these periods separately."""
    anytime: Flag = False
    """intervals that stay valid however often the log is audited while it grows."""
    matures_after: Annotated[Text, tyro.conf.arg(metavar="365d")] = None
    """the time until an outcome is known, in d, w, mo or y; more recent decisions are left out,
    except for demographic."""
    as_of: Annotated[Text, tyro.conf.arg(metavar="DATE")] = None
    """the date on which outcomes were looked up (default: that of the last decision)."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None
    """the seed of the random order in which rows are used; a report names the seed that repeats
    its audit."""
    drop_missing: Flag = False
    """no longer available; prints what to type instead."""


@dataclass(frozen=True)
class MeasureFlags:
    """Measures in addition to the disparity."""

    panel: Flag = False
    """add ratios with the four-fifths rule, odds ratios, score differences, calibration and the
    table of New York's Local Law 144, each with an interval."""
    reference: Annotated[Text, tyro.conf.arg(metavar="GROUP")] = None
    """(panel) the group that all others are compared with."""
    unknown_group: Values = ()
    """(panel) a group of people whose category is not known."""
    ladder: Flag = False
    """add the disparity under weaker and stronger beliefs about the rejected."""
    examiner: Column = None
    """(ladder) the column that names who decided, if cases were assigned as if at random."""
    within: Columns = ()
    """also compare groups within strata of these columns: product,branch."""
    group_probability: Column = None
    """instead of --group, the column with the probability of belonging to an unrecorded group."""
    weight: Column = None
    """the column of weights: how many people each row represents."""
    joint: Flag = False
    """(notion all) the intervals of all notions hold jointly with this confidence."""
    compare: Annotated[Text, tyro.conf.arg(metavar="OLD")] = None
    """an earlier log to compare this one with: --compare old.csv new.csv."""
    mask_test: Flag = False
    """hide known outcomes by simulated decisions, and count how often intervals cover the truth."""
    repeats: Annotated[int, tyro.conf.arg(metavar="N")] = 100
    """(mask-test) how many logs to simulate."""


@dataclass(frozen=True)
class OutputFlags:
    """The files and formats to write."""

    json: Flag = False
    """print every figure as JSON."""
    html: File = None
    """write a report to this file: one self-contained page that works offline."""
    xlsx: File = None
    """write all tables to this workbook."""
    pdf: File = None
    """write a one-page summary to this file; needs Chromium, Chrome or Edge."""
    json_schema: Flag = False
    """print the JSON Schema of the output of --json, and nothing else."""
    words: Annotated[Text, tyro.conf.arg(metavar="ACCEPTED,GOOD")] = None
    """the words for accepted and for a good outcome: searched,found for a log of stops."""
    fail_on: Annotated[Text, tyro.conf.arg(metavar="VERDICT")] = None
    """exit with code 3 on this verdict: unfair, or undetermined for both."""
    example: Flag = False
    """audit a simulated lending log with known truth."""
    save: File = None
    """(example) save the simulated log to this CSV file."""
    init: Flag = False
    """write a configuration file for the log instead of auditing it."""
    out: File = None
    """(init) the file to write (default: audit.toml)."""
    yes: Flag = False
    """(init) use what is detected in the log without asking."""
