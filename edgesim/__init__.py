"""edgesim: a discrete-event simulator of a wireless edge network whose devices really train.

`run` and `study` simulate, `open` reads what they left; `policies`, `algorithms` and the like list what configs name.
The names and their modules stand in `__init__.pyi`; each is loaded when first used: reading a table needs no simulator.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
