"""A process reward model: a step scorer trained on pairs, calibrated, and used as a reward."""
