"""Run a command where every file system is read-only: python read_only_root.py FOLDER... -- COMMAND...

An empty, writable file system of 64 MB is mounted at each FOLDER, as Docker and Kubernetes mount `/dev/shm`.
`UNSHARED` starts this in a mount namespace of its own.
"""

import ctypes
import os
import subprocess
import sys

UNSHARED = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, __file__]

MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, READ_ONLY = 442, -100, 0x8000, 1


def main(folders: list[str], command: list[str]) -> None:
    attributes = (ctypes.c_uint64 * 4)(READ_ONLY, 0, 0, 0)  # to set, to clear, propagation, user namespace
    libc = ctypes.CDLL(None, use_errno=True)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    if libc.syscall(MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, ctypes.byref(attributes), size):
        sys.exit(f"mount_setattr: {os.strerror(ctypes.get_errno())}")
    for folder in folders:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=1777", "none", folder], check=True)
    os.execvp(command[0], command)


if __name__ == "__main__":
    end = sys.argv.index("--")
    main(sys.argv[1:end], sys.argv[end + 1 :])
