"""Conversion of rows to counts by group, in one pass that also checks every value."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.errors import InputError
from sellf.fairness.checks import column, grouping, numeric, refuse_row, same_length, short
from sellf.fairness.notions import Counts, View

CHUNK = 1 << 15
"""Rows processed at a time: few enough for intermediate arrays to stay in the processor's cache."""


class Tally(NamedTuple):
    """Counts from one pass over the rows; all arrays have one entry per group."""

    names: list[Any]
    rows: NDArray[np.int64]
    people: NDArray[np.float64]
    accepted: NDArray[np.float64]
    accepted_positive: NDArray[np.float64]
    rejected_positive: NDArray[np.float64]
    """Counted by labels; NaN unless every label is known."""
    rejected_predicted: NDArray[np.float64]
    """Counted by predictions; NaN if none were given."""

    def counts(self, view: View) -> Counts:
        """Return the counts in a view."""
        hidden = self.rejected_predicted if view == "imputed" else self.rejected_positive
        counts = Counts(self.people, self.accepted, self.accepted_positive, hidden)
        return counts.accepted_only() if view == "accepted" else counts


def tally(
    *,
    group: Any,
    action: Any,
    label: Any = None,
    prediction: Any = None,
    weights: Any = None,
    every_label: bool = True,
) -> Tally:
    """Check the rows and count them by group.

    Args:
        group: the group of each person, any hashable values.
        action: 1 if accepted, 0 if rejected.
        label: 1 or 0; NaN is allowed for the rejected unless `every_label`. None: not counted.
        prediction: for the rejected, 1, 0 or a probability; ignored for the accepted (may be NaN).
        weights: number of people that each row represents; 1 by default.
        every_label: whether the labels of the rejected are needed.
    """
    given = {"action": action, "label": label, "prediction": prediction, "weights": weights}
    columns = {"group": column("group", group)}
    columns |= {
        name: None if value is None and name != "action" else numeric(name, value)
        for name, value in given.items()
    }
    rows = same_length(columns)
    group, action, label, prediction, weights = columns.values()
    names, codes, offset = grouping(group)
    size = len(names)

    # By group, action and label (or 0 if there is none), and by group and action.
    count = np.zeros((size, 2, 2))
    predicted = np.zeros((size, 2))
    people = np.zeros(size, dtype=np.int64)
    for start in range(0, rows, CHUNK):
        part = slice(start, start + CHUNK)
        accepted = _binary("action", action, part)
        cell = codes[part].astype(np.intp)
        if offset:
            cell -= offset
        cell *= 2
        cell += accepted
        weight = None if weights is None else _weight(weights, part)
        if prediction is not None:
            value = _probability(prediction, part, accepted)
            value = value if weight is None else value * weight
            predicted += np.bincount(cell, value, 2 * size).reshape(size, 2)
        if weight is not None:
            people += np.bincount(cell, None, 2 * size).reshape(size, 2).sum(axis=1)
        cell *= 2
        if label is not None:
            cell += _label(label, part, accepted, every_label)
        count += np.bincount(cell, weight, 4 * size).reshape(size, 2, 2)
    if weights is None:
        people = count.sum(axis=(1, 2)).astype(np.int64)

    unknown = np.full(size, np.nan)
    known = label is not None and every_label
    result = Tally(
        names,
        people,
        count.sum(axis=(1, 2)),
        count[:, 1].sum(axis=1),
        count[:, 1, 1] if label is not None else unknown,
        count[:, 0, 1] if known else unknown,
        predicted[:, 0] if prediction is not None else unknown,
    )
    return _present(result)


def _present(result: Tally) -> Tally:
    """Drop names without rows; refuse fewer than two groups."""
    keep = result.rows > 0
    names = [name for name, kept in zip(result.names, keep, strict=True) if kept]
    if len(names) < 2:
        raise InputError(
            f"group has one value only, {short(names[0])}: a disparity compares two groups or more."
        )
    kept: list[Any] = [values[keep] for values in result[1:]]
    return Tally(names, *kept)


def _ones(chunk: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which values are 1, and which are 1 or 0."""
    if chunk.dtype.kind == "b":
        return chunk, np.ones(1, dtype=bool)
    positive = chunk == 1
    return positive, positive | (chunk == 0)


def _binary(name: str, values: NDArray[Any], part: slice) -> NDArray[np.bool_]:
    chunk = values[part]
    positive, valid = _ones(chunk)
    if not valid.all():
        every = (values == 1) | (values == 0)
        refuse_row(name, values, ~every, "it must be 0 or 1 (or False or True).")
    return positive


def _label(
    values: NDArray[Any], part: slice, accepted: NDArray[np.bool_], every_label: bool
) -> NDArray[np.bool_]:
    chunk = values[part]
    positive, valid = _ones(chunk)
    if not valid.all():
        unknown = np.isnan(chunk)
        allowed = valid | (unknown & ~accepted & (not every_label))
        if not allowed.all():
            bad = np.zeros(len(values), dtype=bool)
            bad[part] = ~allowed
            row = int(np.argmin(allowed))
            if not unknown[row]:
                expected = "a label is 0 or 1 (NaN where it was not observed)."
            elif accepted[row]:
                expected = "the label of an accepted person must be known, 0 or 1."
            else:
                expected = (
                    "this person was rejected and the label is not known, but every label is "
                    "needed here: use view='imputed' with a prediction, or view='accepted'."
                )
            refuse_row("label", values, bad, expected)
    return positive


def _probability(
    values: NDArray[Any], part: slice, accepted: NDArray[np.bool_]
) -> NDArray[np.float64]:
    chunk = values[part]
    valid = (chunk >= 0) & (chunk <= 1)
    if not valid.all():
        valid |= accepted
        if not valid.all():
            bad = np.zeros(len(values), dtype=bool)
            bad[part] = ~valid
            refuse_row(
                "prediction",
                values,
                bad,
                "for a rejected person it must be 0, 1 or a probability between them.",
            )
    return chunk.astype(np.float64, copy=False)


def _weight(values: NDArray[Any], part: slice) -> NDArray[np.float64]:
    chunk = values[part]
    if not ((chunk >= 0) & (chunk < np.inf)).all():
        good = (values >= 0) & (values < np.inf)
        refuse_row("weights", values, ~good, "a weight is a finite number, 0 or more.")
    return chunk.astype(np.float64, copy=False)
