"""The flags of `sellf whatif` and `sellf improve`; a field's docstring is its help."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from sellf.cli.arguments import Column, File, Flag, Folder, Text

Share = Annotated[float | None, tyro.conf.arg(metavar="SHARE", help_behavior_hint="")]
Names = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    tyro.conf.arg(metavar="NAME", help_behavior_hint="(repeatable)"),
]


@dataclass(frozen=True)
class QuestionFlags:
    """What is asked of the log."""

    config: File = None
    """a file that says what the log's columns mean, which `sellf audit` can write and reads too."""
    omega: float = 0.05
    """the disparity that is tolerated."""
    delta: float = 0.05
    """the chance with which each interval may miss."""
    overlap: Share = None
    """below this propensity the accepted tell nothing of the rejected."""
    model: str = "boosting"
    """boosting or logistic, for propensities that are not known."""
    matures_after: Annotated[Text, tyro.conf.arg(metavar="365d")] = None
    """how long an outcome takes to be known, in d, w, mo or y; later decisions do not count."""
    as_of: Annotated[Text, tyro.conf.arg(metavar="DATE")] = None
    """the day on which outcomes were looked up (default: that of the last decision)."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None
    """of what is drawn at random; the same seed repeats the answer."""
    html: File = None
    """a new file for a report to send: who gains, who loses, and what is certified."""


@dataclass(frozen=True)
class WhatIfFlags:
    """Which policies are asked about."""

    policy: Column = None
    """the column with the chance that the new policy accepts each person; 0 or 1 for a rule."""
    cutoffs: Column = None
    """the column, on any scale, of which every cut-off is tried."""
    per_group: Flag = False
    """(cutoffs) try a cut-off for each group as well."""
    cost: Share = None
    """what accepting costs, as a share of what a good outcome pays; needed for --cutoffs."""
    notion: Names = ()
    """a measure of fairness to compare (default: all that decisions change; of cut-offs,
    opportunity)."""


@dataclass(frozen=True)
class ImproveFlags:
    """What is asked of a better policy."""

    cost: Share = None
    """what accepting costs, as a share of what a good outcome pays."""
    notion: str = "opportunity"
    """the measure of fairness."""
    kind: str = "logistic"
    """logistic, scorecard or boosting."""
    use_group: Flag = False
    """let the policy see the group; else the group serves to measure only."""
    explore: float = 0.0
    """the smallest chance of acceptance, so that the next log can be learned from."""
    reward_at_least: float = 1.0
    """the share of the current policy's reward that must be kept."""
    horizon: Annotated[int | None, tyro.conf.arg(metavar="T", help_behavior_hint="")] = None
    """follow the policy over so many decisions about everybody, in a world fitted to the log; needs
    --person and --time. A model's answer, apart from the certificate."""
    out: Annotated[Folder, tyro.conf.arg(aliases=["-o"])] = None
    """a new folder for the policy."""
