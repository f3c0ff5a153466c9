"""Traces of devices: availability models, and readers of recorded availability, compute speed and link capacity."""
