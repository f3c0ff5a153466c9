"""Functions that users call, from Python and through the commands: run, study, open, compare, draw, and lists of names.

`edgesim` itself gives these names; `edgesim.simulation.composition` and `edgesim.studies` are the engine room beneath.
"""
