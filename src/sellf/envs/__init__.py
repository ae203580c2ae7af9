"""Simulated worlds (F-MDPs), each with a population, a label law and a transition."""
