"""The user's own modules on their way to the nodes of a cluster, which need not have them.

Only what a config names, and what that imports, travels: files of some kilobytes. Installed packages stay where they
are; like edgesim they are to be installed on the nodes.
"""

import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path, PurePosixPath

from edgesim.base.errors import EdgesimError
from edgesim.base.sources import is_installed

Code = tuple[tuple[str, bytes], ...]
"""Files by their paths below a folder from which they are imported, in order."""


def packed(files: Mapping[str, Path]) -> Code:
    """Files of modules by their names; those of installed packages and of the script that runs are left out."""
    code = {}
    for name, file in files.items():
        if name != "__main__" and not is_installed(file):
            inner = PurePosixPath(*name.split("."))
            code[str(inner / file.name if file.stem == "__init__" else inner.with_name(file.name))] = file.read_bytes()
    return tuple(sorted(code.items()))


@cache
def place(code: Code) -> None:
    """Have this process import these modules first; raises `EdgesimError` where they cannot be written.

    They lie in a folder of this user alone that is named by their hash, so that processes of a node share it.
    """
    if not code:
        return
    digest = sha256()
    for name, content in code:
        digest.update(f"{name} {len(content)} ".encode() + content)
    folder = _own_folder() / digest.hexdigest()
    for name, content in code:
        path = folder / name
        if path.is_file() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        part.write_bytes(content)
        part.replace(path)
    sys.path.insert(0, str(folder))


def _own_folder() -> Path:
    """A folder for temporary files that no other user can write to."""
    user = os.getuid()
    folder = Path(tempfile.gettempdir()) / f"edgesim-code-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != user or stat.S_IMODE(state.st_mode) & 0o022:
        raise EdgesimError(f"{folder}: expected a folder that only this user can write to; remove it")
    return folder
