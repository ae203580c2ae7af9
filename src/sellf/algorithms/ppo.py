"""PPO: reward alone, the baseline that all others build on."""

from sellf.algorithms.algorithm import Algorithm
from sellf.algorithms.config import PPO

ppo = Algorithm("ppo", PPO, "reward alone; the baseline")
