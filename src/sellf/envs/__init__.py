"""The worlds (F-MDPs): a population, a label law, a transition."""
