"""Names of the worlds in Gymnasium; cheap enough to run when `sellf` is imported."""

IDS = {
    "lending": "sellf/Lending-v0",
    "lending-amounts": "sellf/LendingAmounts-v0",
    "recidivism": "sellf/Recidivism-v0",
    "school": "sellf/School-v0",
    "school-continuous": "sellf/SchoolContinuous-v0",
    "attention": "sellf/Attention-v0",
    "admission": "sellf/Admission-v0",
}


def register() -> None:
    """Register the worlds with `gymnasium.make` and `gymnasium.make_vec`."""
    import gymnasium

    for world, name in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="sellf.envs.gymnasium:WorldEnv",
                vector_entry_point="sellf.envs.gymnasium:WorldVectorEnv",
                kwargs={"world": world},
            )
