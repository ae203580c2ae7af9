"""The shared trainer, and one module per algorithm that defines only what differs from it."""
