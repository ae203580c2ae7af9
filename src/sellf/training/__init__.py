"""Training: the loop, its folder and progress, logs, the agent, and its evaluation."""
