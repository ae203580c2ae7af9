"""One trainer, and one short file per algorithm that says only what is different in it."""
