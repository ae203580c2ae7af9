"""Stable-Baselines3's PPO, unchanged, on a world: `pip install stable-baselines3` first."""

import gymnasium
from stable_baselines3 import PPO

import sellf.envs.gymnasium  # noqa: F401  (makes the worlds known to Gymnasium)

env = gymnasium.make("sellf/Lending-v0", notion="opportunity", oracle=True)
agent = PPO("MlpPolicy", env, learning_rate=3e-4, gamma=1.0, seed=0, verbose=1)
agent.learn(50_000)

observation, info = env.reset(seed=1)
for _ in range(5_000):
    action, _ = agent.predict(observation)
    observation, reward, terminated, truncated, info = env.step(int(action))
    if terminated or truncated:
        break
print(
    f"resource {info['resource']:,.1f}; opportunity disparity {info['disparity_true']:.3f}, of "
    f"which the accepted show {info['disparity']:.3f}"
)
