"""A file handle and flock's flags go in; the lock is held, or `BlockingIOError` says that somebody else has it.

On a file system that cannot lock (network ones) nothing is held, and work goes on without the guard.
"""

import errno
import fcntl

# How file systems say that they cannot lock.
WITHOUT_LOCKS = (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def hold(handle: int, flags: int) -> None:
    try:
        fcntl.flock(handle, flags)
    except OSError as error:
        if error.errno not in WITHOUT_LOCKS:
            raise
