"""A world of one's own in a dozen lines: a table, who repays, what a decision does, a cost."""

import numpy as np

import sellf

rng = np.random.default_rng(0)
table = {
    "sex": rng.choice(["female", "male"], 1000),
    "score": rng.integers(300, 851, 1000) // 50 * 50,
}
world = sellf.world_from_frame(
    table,
    group="sex",
    numeric=["score"],
    label=lambda x: (x["score"] - 200) / 700,
    transition=lambda x, accepted, repaid: (
        {"score": np.clip(x["score"] + (50 if repaid else -50), 300, 850)} if accepted else None
    ),
    cost=0.6,
)
agent = sellf.train(world, omega=0.05, steps=20_000)
print(sellf.evaluate(agent, deployments=3))
