"""Training: the loop, run folders, progress, logging, agents and their evaluation."""
