"""School admission: applicants with 37 categorical answers, who age and may get a boost."""

from pathlib import Path

import numpy as np

from sellf.envs.build import Features, Rules, build
from sellf.envs.school import enem
from sellf.envs.school import model as school_model
from sellf.envs.school.enem import People
from sellf.envs.school.law import LabelLaw, fit_law
from sellf.envs.world import World
from sellf.errors import InputError

POOL = 50_000
"""Number of applicants drawn once from the model; populations are drawn from them."""
BEFORE = "accepted or passed before"
BOOST = 0.5
"""Increase of the probability of passing after being accepted or passing once."""


def school(
    rules: Rules,
    *,
    grades: bool = False,
    microdata: str | Path | None = None,
    state: str | None = None,
) -> World:
    """Build the school world on ENEM's figures (Sec. 5; App. "Datasets and Environments").

    At every visit a person moves to the older age class. After being accepted or passing once, the
    probability of passing is 0.5 higher (at most 1) at all later visits, whether accepted or not.

    Args:
        rules: population, horizon and the other rules.
        grades: whether three standardised grades are additional features ("school-continuous").
        microdata: INEP's official file, to use its real rows instead of the fitted model.
        state: the two-letter code of the state whose applicants are used from that file (default:
            SP, as in the paper).
    """
    if microdata is None and state is not None:
        raise InputError(f"state is {state!r}, but no file is named: give microdata=...")
    if microdata is None:
        model = school_model.load()
        people = model.sample(np.random.default_rng(0), POOL)
        law = model.law_with_grades if grades else model.law
        features, categories = model.features, model.categories
    else:
        rows = enem.read_enem(microdata, state=state or enem.SAO_PAULO)
        people, law = rows.people, fit_law(rows, with_grades=grades)
        features, categories = rows.features, rows.categories
    sizes = [len(names) for names in categories]

    # Profile = applicant x age x boost; answer 0 is the age class, which changes.
    applicants = len(people.group)
    alpha = np.stack([_alpha(law, people, sizes, age) for age in (0, 1)], axis=1)
    alpha = np.stack([alpha, np.minimum(alpha + BOOST, 1.0)], axis=2)
    profile = np.arange(4 * applicants).reshape(applicants, 2, 2)
    older = np.repeat(profile[:, 1:2, :], 2, axis=1)
    boosted = np.repeat(older[:, :, 1:2], 2, axis=2)
    moves = np.stack([older, boosted, boosted, boosted], axis=-1).reshape(-1, 2, 2)
    numbers = (people.grades - law.grade_mean) / law.grade_std if grades else None
    return build(
        "school-continuous" if grades else "school",
        rules,
        groups=list(enem.GROUPS),
        group=np.repeat(people.group, 4),
        alpha=alpha.ravel(),
        moves=moves,
        share=_arrivals(people.codes[:, 0]),
        features=Features(
            fixed=np.repeat(np.arange(applicants), 4),
            codes=people.codes[:, 1:],
            categories=dict(zip(features[1:], map(list, categories[1:]), strict=True)),
            numbers=numbers,
            number_names=list(enem.GRADES) if grades else [],
            scales=_scales(law) if grades else {},
            changing=np.tile(np.arange(4), applicants),
            changes=np.array([[1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1]]),
            changing_names=["younger", "older", BEFORE],
            changing_raw=[("age", "younger"), ("age", "older"), (BEFORE, None)],
        ),
    )


def _scales(law: LabelLaw) -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation of each grade."""
    pairs = zip(law.grade_mean.tolist(), law.grade_std.tolist(), strict=True)
    return dict(zip(enem.GRADES, pairs, strict=True))


def _alpha(law: LabelLaw, people: People, sizes: list[int], age: int) -> np.ndarray:
    codes = people.codes.copy()
    codes[:, 0] = age
    return law.probability(People(codes, people.group, people.grades), sizes)


def _arrivals(age: np.ndarray) -> np.ndarray:
    """Return the shares of newcomers: everyone arrives equally often, at their age, unboosted."""
    share = np.zeros((len(age), 2, 2))
    share[np.arange(len(age)), age, 0] = 1 / len(age)
    return share.ravel()
