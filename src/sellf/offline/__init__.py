"""Off-policy evaluation and policy learning from a log of decisions."""
