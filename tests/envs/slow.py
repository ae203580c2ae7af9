"""The worlds again, one person and one rule at a time, in plain Python: slow, obviously right."""

import numpy as np

from sellf.envs.recidivism import smoothed
from sellf.envs.school import model as school_model
from sellf.envs.school.enem import People
from sellf.envs.tables import compas, fico


class Lending:
    cost, horizon = 0.8, 10_000

    def __init__(self, races=("Black", "White")):
        figures = fico()
        self.repay = {race: figures.p_repay[figures.races.index(race)] for race in races}
        self.races = list(races)

    def person(self, profile):
        return {"group": self.races[profile // 10], "score": profile % 10}

    def profile(self, person):
        return self.races.index(person["group"]) * 10 + person["score"]

    def chance(self, person):
        return self.repay[person["group"]][person["score"]]

    def change(self, person, accepted, label):
        if accepted and label:
            person["score"] = min(person["score"] + 1, 9)
        elif accepted:
            person["score"] = max(person["score"] - 1, 0)


class Recidivism:
    cost, horizon = 0.9, 2048

    def __init__(self):
        figures = compas()
        n = figures.n.sum(axis=1)
        self.good = smoothed(n, n - figures.n_reoffended.sum(axis=1))
        self.races = list(figures.races)

    def person(self, profile):
        return {
            "group": self.races[profile // 40],
            "age": profile % 40 // 8,
            "priors": profile % 8,
        }

    def profile(self, person):
        return self.races.index(person["group"]) * 40 + person["age"] * 8 + person["priors"]

    def chance(self, person):
        return self.good[self.races.index(person["group"]), person["age"], person["priors"]]

    def change(self, person, accepted, label):
        if accepted and not label and person["priors"] < 7:
            person["priors"] += 1


class School:
    cost, horizon = 0.4, 2048

    def __init__(self, grades=False):
        self.model = school_model.load()
        self.people = self.model.sample(np.random.default_rng(0), 50_000)
        self.grades = grades
        self.cache = {}

    def person(self, profile):
        applicant, rest = divmod(profile, 4)
        group = self.model.groups[self.people.group[applicant]]
        return {"group": group, "who": applicant, "older": rest // 2, "boost": rest % 2}

    def profile(self, person):
        return person["who"] * 4 + person["older"] * 2 + person["boost"]

    def chance(self, person):
        who, older = person["who"], person["older"]
        if (who, older) not in self.cache:
            codes = self.people.codes[[who]].copy()
            codes[0, 0] = older
            alone = People(codes, self.people.group[[who]], self.people.grades[[who]])
            self.cache[who, older] = self.model.probability(alone, with_grades=self.grades)[0]
        return min(1.0, self.cache[who, older] + 0.5 * person["boost"])

    def change(self, person, accepted, label):
        person["older"] = 1
        if accepted or label:
            person["boost"] = 1


RULES = {
    "lending": Lending,
    "recidivism": Recidivism,
    "school": School,
    "school-continuous": lambda: School(grades=True),
}


class Simulation:
    """One episode after another: people, a resource, and all decisions, of which the last count."""

    def __init__(self, rules, populations, groups, notion, window):
        self.rules, self.notion, self.groups = rules, notion, list(groups)
        self.populations = iter(populations)
        self.window_size = window
        self.begin()

    def begin(self, decisions=()):
        self.people = [self.rules.person(int(p)) for p in next(self.populations)]
        self.decisions = np.empty(100_000, int)
        self.decided = 0
        for decision in decisions:
            self.remember(decision)
        self.accepted = self.positive = self.time = 0

    def remember(self, decision):
        self.decisions[self.decided] = decision
        self.decided += 1

    def window(self):
        return self.decisions[max(0, self.decided - self.window_size) : self.decided]

    def resource(self):
        spent = np.float32(self.rules.cost) * np.float32(self.accepted)
        return max(np.float32(1000 + self.positive) - spent, np.float32(0))

    def decide(self, who, accept, luck_label, luck_later, guess, again=None):
        """Take one decision; `accept`, `guess` and `again` are functions of the profile.

        With `again`, a window that counts people after their change has a new decision about them.
        """
        person = self.people[who]
        profile = self.rules.profile(person)
        accepted = accept(profile)
        label = luck_label < np.float32(self.rules.chance(person))
        before = self.resource()
        self.accepted += accepted
        self.positive += accepted and label
        self.rules.change(person, accepted, label)
        later = luck_later < np.float32(self.rules.chance(person))
        moved = self.rules.profile(person)
        counted, guessed, action = label, profile, accepted
        if self.notion == "qualification":
            counted, guessed, action = later, moved, again(moved) if again else accepted
        group = self.groups.index(person["group"])
        self.remember(8 * group + 4 * action + 2 * counted + guess(guessed))
        self.time += 1
        terminated = self.resource() <= 0
        truncated = self.time >= self.rules.horizon and not terminated
        reward = -before if terminated else accepted * (float(label) - self.rules.cost)
        return {
            "profile": profile,
            "moved": moved,
            "label": label,
            "reward": reward,
            "terminated": terminated,
            "truncated": truncated,
        }

    def recount(self):
        """Count the window from scratch."""
        window = self.window()
        kinds = np.bincount(window, minlength=len(self.groups) * 8).tolist()
        return [*kinds, self.window_size - len(window)]
