"""The flags of `sellf audit`, by what they are about; a field's docstring is its help.

A flag has the name of the option of `sellf.audit` that it stands for, and of the entry in a
configuration file; `feature` stands for `features`.
"""

from dataclasses import dataclass
from typing import Annotated

import tyro

from sellf.cli.kinds import Column, Columns, File, Flag, Text, Values


@dataclass(frozen=True)
class ColumnFlags:
    """Which column of the log holds what, and what its values mean."""

    group: Columns = ()
    """the column that names each person's group; again for a second column."""
    decision: Column = None
    """the column of decisions, 1 for accepted and 0 for rejected."""
    outcome: Column = None
    """the column of outcomes, 1 for good and 0 for bad, empty for the rejected."""
    propensity: Column = None
    """the column with the chance that each decision was to accept."""
    score: Column = None
    """the column with predictions, the chance of a good outcome, fitted on other people."""
    feature: Columns = ()
    """a column to estimate propensities from where they are not known; again for more."""
    time: Column = None
    """the column that dates each decision."""
    person: Column = None
    """the column that names the person behind each row, for people with several rows."""
    decided_on: Column = None
    """the column with the date of each decision."""
    accepted_value: Text = None
    """the decision that means accepted, if that is not 1."""
    positive_value: Text = None
    """the outcome that is good, if that is not 1."""
    score_is_risk: Flag = False
    """the score is the chance of a bad outcome."""


@dataclass(frozen=True)
class ReadingFlags:
    """How the log is read, and which of its rows."""

    trust_rejected_outcomes: Flag = False
    """use the outcomes that the log holds for the rejected."""


@dataclass(frozen=True)
class JudgeFlags:
    """What is asked."""

    notion: str = "opportunity"
    """qualification, accuracy, opportunity, demographic, predictive-parity,
    false-positive-rate, equalized-odds, or all."""
    omega: float = 0.05
    """the disparity that is tolerated."""
    delta: float = 0.05
    """the chance with which the interval may miss."""
    overlap: Annotated[float | None, tyro.conf.arg(metavar="P", help_behavior_hint="")] = None
    """below this propensity the accepted tell nothing of the rejected."""
    model: str = "boosting"
    """boosting or logistic, for propensities that are not known."""
    by: Text = None
    """day, week, month, quarter or year, to audit each on its own as well."""
    anytime: Flag = False
    """intervals that hold however often one looks while the log grows."""
    matures_after: Annotated[Text, tyro.conf.arg(metavar="365d")] = None
    """how long an outcome takes to be known, in d, w, mo or y; later decisions do not count,
    except for demographic."""
    as_of: Annotated[Text, tyro.conf.arg(metavar="DATE")] = None
    """the day on which outcomes were looked up (default: that of the last decision)."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None
    """of the random order in which rows are used; the one in a report repeats its audit."""
    drop_missing: Flag = False
    """no longer available; says what to type instead."""


@dataclass(frozen=True)
class MeasureFlags:
    """What is asked beside the disparity."""

    panel: Flag = False
    """add ratios with the four-fifths line, odds ratios, scores, calibration and New York's
    table, each with an interval."""
    reference: Annotated[Text, tyro.conf.arg(metavar="GROUP")] = None
    """(panel) the group that all others are compared with."""
    unknown_group: Values = ()
    """(panel) a group that stands for people whose category is not known."""
    ladder: Flag = False
    """add the disparity under weaker and stronger beliefs about the rejected."""
    examiner: Column = None
    """(ladder) the column that names who decided, where cases came as if at random."""
    within: Columns = ()
    """compare groups within the values of these columns as well: product,branch."""
    group_probability: Column = None
    """instead of --group, the column with the chance of belonging to an unrecorded group."""


@dataclass(frozen=True)
class OutputFlags:
    """What is written, and where."""

    json: Flag = False
    """print every figure as JSON."""
    html: File = None
    """write a report to send into this file: one page that works offline."""
    example: Flag = False
    """audit a simulated lending log whose truth is known."""
    save: File = None
    """(example) keep its log in this CSV file, to try things with."""
