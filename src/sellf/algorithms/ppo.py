"""PPO: maximises the reward alone; the baseline of the other algorithms."""

from sellf.algorithms.algorithm import Algorithm
from sellf.algorithms.config import PPO

ppo = Algorithm("ppo", PPO, "maximises the reward alone; the baseline")
