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
    """The tolerance, how intervals are computed, and the report."""

    config: File = None
    """a configuration file that describes the columns, as for `sellf audit`, which can write it."""
    omega: float = 0.05
    """the largest disparity that is tolerated."""
    delta: float = 0.05
    """the probability with which each interval may miss (1 - confidence level)."""
    overlap: Share = None
    """the propensity below which nothing is concluded from the accepted about the rejected."""
    model: str = "boosting"
    """the model of propensities that are not known: boosting or logistic."""
    matures_after: Annotated[Text, tyro.conf.arg(metavar="365d")] = None
    """the time until an outcome is known, in d, w, mo or y; more recent decisions are left out."""
    as_of: Annotated[Text, tyro.conf.arg(metavar="DATE")] = None
    """the date on which outcomes were looked up (default: that of the last decision)."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None
    """the random seed; the same seed repeats the result."""
    html: File = None
    """write a report to this file: who gains, who loses, and what is certified."""


@dataclass(frozen=True)
class WhatIfFlags:
    """The policies to evaluate."""

    policy: Column = None
    """the column with the probability that the new policy accepts each person; 0 or 1 for a
    deterministic rule."""
    cutoffs: Column = None
    """the column, on any scale, whose cut-offs are tried."""
    per_group: Flag = False
    """(cutoffs) also try a separate cut-off for each group."""
    cost: Share = None
    """the cost of accepting, as a share of what a good outcome pays; needed for --cutoffs."""
    notion: Names = ()
    """a notion of fairness to compare (default: all that decisions change; for cut-offs,
    opportunity)."""


@dataclass(frozen=True)
class ImproveFlags:
    """The policy to learn, and what it has to achieve."""

    cost: Share = None
    """the cost of accepting, as a share of what a good outcome pays."""
    notion: str = "opportunity"
    """the notion of fairness."""
    kind: str = "logistic"
    """the kind of policy: logistic, scorecard or boosting."""
    use_group: Flag = False
    """let the policy use the group; otherwise the group is used for measurement only."""
    explore: float = 0.0
    """the smallest probability of acceptance, so that policies can be learned from the next log."""
    reward_at_least: float = 1.0
    """the share of the current policy's reward that must be kept."""
    horizon: Annotated[int | None, tyro.conf.arg(metavar="T", help_behavior_hint="")] = None
    """simulate the policy over this many decisions about everybody, in a world fitted to the log;
    needs --person and --time. The result depends on the model and is not certified."""
    out: Annotated[Folder, tyro.conf.arg(aliases=["-o"])] = None
    """a new folder for the policy."""
