"""Tuning: an optimiser (Optuna) proposes cells of knobs, whose runs make a study that grows."""
